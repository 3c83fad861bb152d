use super::{Secret, Side, nonce};

#[test]
fn a_proof_holds_for_its_side_its_nonces_and_its_secret_alone() {
    let secret = Secret(b"a secret of some length".to_vec());
    let (worker, coordinator) = (nonce(), nonce());
    assert_ne!(worker, coordinator);
    let proof = secret.proof(Side::Worker, &worker, &coordinator);
    assert!(secret.is_proven(Side::Worker, &worker, &coordinator, &proof));
    assert!(!secret.is_proven(Side::Coordinator, &worker, &coordinator, &proof));
    assert!(!secret.is_proven(Side::Worker, &coordinator, &worker, &proof));
    assert!(!Secret(b"another of some length".to_vec()).is_proven(Side::Worker, &worker, &coordinator, &proof));
    for wrong in ["", "no base64!", "AAAA", &proof[1..]] {
        assert!(!secret.is_proven(Side::Worker, &worker, &coordinator, wrong), "{wrong:?}");
    }
    assert!(!format!("{secret:?}").contains("length"));
}
