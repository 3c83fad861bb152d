//! Histograms.
