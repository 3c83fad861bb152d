//! Tests that every option of every command has an effect: each option is tried, and the result must differ from
//! the result without it. The list of options comes from the program itself, so a new option must also be tried
//! here.

use crate::session::{Ran, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// For each command, an example that a shell can run and that succeeds.
const LINES: &[(&str, &str)] = &[
    ("import", "larch import db new rows.tsv"),
    ("build-files", "larch build-files rows.tsv --out made"),
    ("ingest", "larch ingest db new built"),
    ("get", "larch get db t 0002"),
    ("put", "larch put db raw k v"),
    ("merge", "larch merge db raw k --add 2"),
    ("load", "larch load db raw < few.tsv"),
    ("delete", "larch delete db t 0002"),
    ("delete-range", "larch delete-range db t --from 0300"),
    ("scan", "larch scan db t"),
    ("export", "larch export db t out.tsv > said"),
    ("count", "larch count db t"),
    ("nth", "larch nth db t 3"),
    ("sample", "larch sample db t 3 --seed 1"),
    ("warm", "larch warm db t"),
    ("tables", "larch tables db"),
    ("create-table", "larch create-table db new"),
    ("drop-table", "larch drop-table db t"),
    ("rename-table", "larch rename-table db t new"),
    ("stats", "larch stats db t"),
    ("metrics", "larch metrics db | sed -n 1p"),
    ("split", "larch split db t --parts 2"),
    ("explain get", "larch explain db t get 0002"),
    ("explain scan", "larch explain db t scan"),
    ("compact", "larch compact db t"),
    ("alter", "larch alter db t --filter-prefix 1"),
    ("clone", "larch clone db t new"),
    ("split-off", "larch split-off db t 0200 new"),
    ("index create", "larch index create db t new --columns 2"),
    ("index drop", "larch index drop db i by"),
    ("index check", "larch index check db"),
    ("index list", "larch index list db"),
    ("check", "larch check db"),
    ("repair", "larch repair db saved"),
    ("checkpoint", "larch checkpoint db copy"),
    ("backup", "larch backup db kept"),
    ("backups", "larch backups kept"),
    ("keep", "larch keep db now > said"),
    ("kept", "larch kept db | sed 's/since.*//'"),
    ("forget", "larch forget db before"),
    ("retain", "larch retain db | sed 's/since.*//'"),
    ("subscribe", "larch subscribe db new | sed 's/since.*//'"),
    ("subscriptions", "larch subscriptions db | sed 's/since.*//'"),
    ("unsubscribe", "larch unsubscribe db mail"),
    ("history", "larch history db raw k1"),
    ("changes", "larch changes db"),
    ("diff", "larch diff db raw before"),
    ("revert", "larch revert db raw before"),
    ("replicate", "larch replicate db copy"),
    ("restore", "larch restore kept again"),
    ("verify-backup", "larch verify-backup kept"),
    ("follow", "larch follow db --lines 1"),
    ("dump", "larch dump db t"),
    ("demo", "larch demo d --rows 100 | grep -v read"),
    ("plan", "larch plan --rows 1e9 --row-bytes 100"),
    ("shell", "larch shell db <<< $'get t 0002\nput raw k v'"),
    ("options", "larch options"),
];

/// Commands with an option `--follow` of their own, by which they go on.
const FOLLOWING: [&str; 2] = ["changes", "replicate"];

/// For each option of commands that make or change tables, a value that has a visible effect.
const OF_TABLES: &[(&str, &str)] = &[
    ("--page", "4KiB"),
    ("--node", "4KiB"),
    ("--index", "flat"),
    ("--compression", "zstd:1"),
    ("--filters", "none"),
    ("--filter-prefix", "3"),
    ("--in-memory", "true"),
    ("--expire-after", "10m"),
    ("--expire-by", "'value[900..908].le u64'"),
];

/// An option, and a line that uses it. The last text is another line, and the results of the two lines must
/// differ. If it is empty, the line of the command in [`LINES`] is used.
const TRIED: &[(&str, &str, &str)] = &[
    ("import --format", "larch import db new - --format tsv < rows.tsv", "larch import db new - < rows.tsv"),
    ("import --header", "larch import db new rows.tsv --header", ""),
    ("import --no-header", "larch import db new rows.csv --no-header", "larch import db new rows.csv"),
    ("import --key", "larch import db new rows.tsv --key 2", ""),
    ("import --groups", "larch import db new rows.tsv --groups 'hot:2;cold:*'", ""),
    ("import --json", "larch import db new rows.tsv --json", ""),
    ("build-files --out", "larch build-files rows.tsv --out elsewhere", ""),
    ("build-files --like", "larch build-files rows.tsv --out made --like db g", ""),
    (
        "build-files --format",
        "larch build-files - --format tsv --out made < rows.tsv",
        "larch build-files - --out made < rows.tsv",
    ),
    ("build-files --header", "larch build-files rows.tsv --out made --header", ""),
    (
        "build-files --no-header",
        "larch build-files rows.csv --out made --no-header",
        "larch build-files rows.csv --out made",
    ),
    ("build-files --key", "larch build-files rows.tsv --out made --key 2", ""),
    ("build-files --groups", "larch build-files rows.tsv --out made --groups 'hot:2;cold:*'", ""),
    (
        "build-files --write-buffer",
        "larch build-files rows.tsv --out made --key 2 --write-buffer 1KiB",
        "larch build-files rows.tsv --out made --key 2",
    ),
    (
        "build-files --compat",
        "larch build-files rows.tsv --out made --compression zstd --compat 0.1",
        "larch build-files rows.tsv --out made --compression zstd",
    ),
    ("build-files --json", "larch build-files rows.tsv --out made --json", ""),
    ("ingest --verify", "larch ingest db new built --verify", ""),
    ("ingest --move", "larch ingest db new built --move", ""),
    ("ingest --json", "larch ingest db new built --json", ""),
    ("get --json", "larch get db t 0002 --json", ""),
    ("get --format", "larch get db t 0002 --format csv", ""),
    ("get --until", "larch get db t 0002 --until", ""),
    ("get --groups", "larch get db g 0002 --groups hot", "larch get db g 0002"),
    ("get --at", "larch get db raw k1 --at before", "larch get db raw k1"),
    ("get --key-types", "larch get db bare '(1, \"a\")' --key-types 'u32, string'", "larch get db bare '(1, \"a\")'"),
    (
        "merge --add",
        "larch merge db raw new --add 5 && larch get db raw new",
        "larch merge db raw new --add 6 && larch get db raw new",
    ),
    ("merge --append", "larch merge db raw k0 --append x && larch get db raw k0", "larch get db raw k0"),
    ("merge --max", "larch merge db raw k0 --max x && larch get db raw k0", "larch get db raw k0"),
    ("merge --min", "larch merge db raw k0 --min a && larch get db raw k0", "larch get db raw k0"),
    ("merge --set-bit", "larch merge db raw k0 --set-bit 3 && larch get db raw k0", "larch get db raw k0"),
    (
        "merge --json-patch",
        "larch merge db raw new --json-patch '{\"a\": 1}' && larch get db raw new",
        "larch merge db raw new --append '{}' && larch get db raw new",
    ),
    (
        "merge --key-types",
        "larch merge db bare '(2, \"b\")' --append v --key-types 'u32, string' && larch scan db bare",
        "larch merge db bare '(2, \"b\")' --append v && larch scan db bare",
    ),
    (
        "put --key-types",
        "larch put db bare '(2, \"b\")' v --key-types 'u32, string' && larch scan db bare",
        "larch put db bare '(2, \"b\")' v && larch scan db bare",
    ),
    (
        "put --ttl",
        "larch put db raw k v --ttl 0s && larch get db raw k || echo gone",
        "larch put db raw k v && larch get db raw k || echo gone",
    ),
    (
        "put --until",
        "larch put db raw k v --until 2000-01-01 && larch get db raw k || echo gone",
        "larch put db raw k v && larch get db raw k || echo gone",
    ),
    (
        "load --delete",
        "larch load db t --delete < keys.txt && larch scan db t | head -3",
        "larch load db raw < keys.txt",
    ),
    (
        "load --batch",
        "larch load db raw --batch 2 < few.tsv && larch follow db --lines 1",
        "larch load db raw < few.tsv && larch follow db --lines 1",
    ),
    (
        "load --key-types",
        "larch load db bare --key-types 'u32, string' < tuples.tsv && larch scan db bare",
        "larch load db bare < tuples.tsv && larch scan db bare",
    ),
    (
        "load --format",
        "larch scan db raw --format jsonl > raw.jsonl && larch load db copy --format jsonl < raw.jsonl && larch scan db copy",
        "larch scan db raw --format jsonl > raw.jsonl && larch load db copy < raw.jsonl && larch scan db copy",
    ),
    (
        "delete --key-types",
        "larch delete db bare '(1, \"a\")' --key-types 'u32, string'",
        "larch delete db bare '(1, \"a\")'",
    ),
    (
        "delete-range --from",
        "larch delete-range db t --to 0300 --from 0100 && larch scan db t",
        "larch delete-range db t --to 0300 && larch scan db t",
    ),
    (
        "delete-range --to",
        "larch delete-range db t --from 0100 --to 0300 && larch scan db t",
        "larch delete-range db t --from 0100 && larch scan db t",
    ),
    (
        "delete-range --prefix",
        "larch delete-range db t --from 0100 --prefix 01 && larch scan db t",
        "larch delete-range db t --from 0100 && larch scan db t",
    ),
    (
        "delete-range --key-types",
        "larch delete-range db bare --prefix '(1)' --key-types 'u32, string' && larch scan db bare",
        "larch delete-range db bare --prefix '(1)' && larch scan db bare",
    ),
    ("scan --by", "larch scan db i --by by", "larch scan db i"),
    ("scan --at", "larch scan db raw --at before", "larch scan db raw"),
    ("scan --from", "larch scan db t --from 0300", ""),
    ("scan --to", "larch scan db t --to 0300", ""),
    ("scan --prefix", "larch scan db t --prefix 00", ""),
    ("scan --key-types", "larch scan db bare --key-types 'u32, string'", "larch scan db bare"),
    ("scan --reverse", "larch scan db t --reverse", ""),
    ("scan --limit", "larch scan db t --limit 1", ""),
    ("scan --keys", "larch scan db t --keys", ""),
    ("scan --groups", "larch scan db g --groups hot", "larch scan db g"),
    ("scan --format", "larch scan db t --format jsonl", ""),
    ("scan --out", "larch scan db t --out out.csv", ""),
    (
        "scan --overwrite",
        "larch scan db t --out rows.csv --overwrite && head -1 rows.csv",
        "larch scan db t --out rows.csv && head -1 rows.csv",
    ),
    ("export --all", "larch export db --all files > said", ""),
    (
        "export --at",
        "larch export db raw out.tsv --at before > said && cat out.tsv",
        "larch export db raw out.tsv > said && cat out.tsv",
    ),
    ("export --format", "larch export db t out.tsv --format jsonl > said && head -1 out.tsv", ""),
    (
        "export --compress",
        "larch export db --all files --compress gz > said && ls files",
        "larch export db --all files > said && ls files",
    ),
    (
        "export --from",
        "larch export db t out.tsv --from 0300 > said && cat out.tsv",
        "larch export db t out.tsv > said && cat out.tsv",
    ),
    (
        "export --to",
        "larch export db t out.tsv --to 0300 > said && cat out.tsv",
        "larch export db t out.tsv > said && cat out.tsv",
    ),
    (
        "export --prefix",
        "larch export db t out.tsv --prefix 03 > said && cat out.tsv",
        "larch export db t out.tsv > said && cat out.tsv",
    ),
    (
        "export --key-types",
        "larch export db bare out.tsv --key-types 'u32, string' > said && cat out.tsv",
        "larch export db bare out.tsv > said && cat out.tsv",
    ),
    ("export --overwrite", "larch export db t rows.tsv --overwrite > said", "larch export db t rows.tsv > said"),
    ("export --json", "larch export db t out.tsv --json", ""),
    ("count --at", "larch count db raw --at before", "larch count db raw"),
    ("count --from", "larch count db t --from 0300", ""),
    ("count --to", "larch count db t --to 0300", ""),
    ("count --prefix", "larch count db t --prefix 03", ""),
    (
        "count --key-types",
        "larch count db bare --prefix '(1)' --key-types 'u32, string'",
        "larch count db bare --prefix '(1)'",
    ),
    ("count --exact", "larch count db t --from 0303 --to 0307 --exact", "larch count db t --from 0303 --to 0307"),
    ("count --json", "larch count db t --json", ""),
    ("nth --at", "larch nth db raw 1 --at before", "larch nth db raw 1"),
    ("nth --from", "larch nth db t 3 --from 0300", ""),
    ("nth --to", "larch nth db t 300 --to 0100", "larch nth db t 300"),
    ("nth --prefix", "larch nth db t 3 --prefix 02", ""),
    ("nth --key-types", "larch nth db bare 0 --key-types 'u32, string'", "larch nth db bare 0"),
    ("nth --keys", "larch nth db t 3 --keys", ""),
    ("nth --groups", "larch nth db g 3 --groups hot", "larch nth db g 3"),
    ("nth --format", "larch nth db t 3 --format jsonl", ""),
    ("sample --at", "larch sample db raw 3 --seed 1 --at before", "larch sample db raw 3 --seed 1"),
    ("sample --seed", "larch sample db t 3 --seed 2", ""),
    ("sample --from", "larch sample db t 3 --seed 1 --from 0399", ""),
    ("sample --to", "larch sample db t 3 --seed 1 --to 0002", ""),
    ("sample --prefix", "larch sample db t 3 --seed 1 --prefix 0002", ""),
    (
        "sample --key-types",
        "larch sample db bare 9 --seed 1 --key-types 'u32, string'",
        "larch sample db bare 9 --seed 1",
    ),
    ("sample --keys", "larch sample db t 3 --seed 1 --keys", ""),
    ("sample --groups", "larch sample db g 3 --seed 1 --groups hot", "larch sample db g 3 --seed 1"),
    ("sample --format", "larch sample db t 3 --seed 1 --format jsonl", ""),
    ("warm --from", "larch warm db t --from 0399", ""),
    ("warm --to", "larch warm db t --to 0002", ""),
    ("warm --prefix", "larch warm db t --prefix 0002", ""),
    (
        "warm --key-types",
        "larch warm db bare --from '(0)' --key-types 'u32, string'",
        "larch warm db bare --from '(0)'",
    ),
    ("warm --json", "larch warm db t --json", ""),
    ("tables --json", "larch tables db --json", ""),
    (
        "create-table --key-types",
        "larch create-table db new --key-types u32 && larch tables db new",
        "larch create-table db new && larch tables db new",
    ),
    ("rename-table --json", "larch rename-table db t new --json", ""),
    ("stats --from", "larch stats db t --from 0300", ""),
    ("stats --to", "larch stats db t --to 0300", ""),
    ("stats --buckets", "larch stats db t --buckets 3", ""),
    ("stats --exact", "larch stats db t --exact", ""),
    (
        "stats --key-types",
        "larch stats db bare --from '(0)' --exact --key-types 'u32, string'",
        "larch stats db bare --from '(0)' --exact",
    ),
    ("stats --json", "larch stats db t --json", ""),
    ("metrics --prometheus", "larch metrics db --prometheus | sed -n 1p", ""),
    ("split --parts", "larch split db t --parts 4", ""),
    ("split --from", "larch split db t --parts 2 --from 0300", ""),
    ("split --to", "larch split db t --parts 2 --to 0100", ""),
    (
        "split --key-types",
        "larch split db bare --parts 2 --from '(0)' --key-types 'u32, string' --json",
        "larch split db bare --parts 2 --from '(0)' --json",
    ),
    ("split --json", "larch split db t --parts 2 --json", ""),
    (
        "explain get --key-types",
        "larch explain db bare get '(1, \"a\")' --key-types 'u32, string'",
        "larch explain db bare get '(1, \"a\")'",
    ),
    ("explain get --groups", "larch explain db g get 0002 --groups hot", "larch explain db g get 0002"),
    ("explain get --json", "larch explain db t get 0002 --json", ""),
    ("explain scan --by", "larch explain db i scan --by by", "larch explain db i scan"),
    ("explain scan --from", "larch explain db t scan --from 0300", ""),
    ("explain scan --to", "larch explain db t scan --to 0300", ""),
    ("explain scan --prefix", "larch explain db t scan --prefix 03", ""),
    (
        "explain scan --key-types",
        "larch explain db bare scan --from '(0)' --key-types 'u32, string'",
        "larch explain db bare scan --from '(0)'",
    ),
    ("explain scan --reverse", "larch explain db t scan --limit 1 --reverse", "larch explain db t scan --limit 1"),
    ("explain scan --limit", "larch explain db t scan --limit 1", ""),
    ("explain scan --groups", "larch explain db g scan --groups hot", "larch explain db g scan"),
    ("explain scan --json", "larch explain db t scan --json", ""),
    ("compact --json", "larch compact db t --json", ""),
    (
        "alter --key-types",
        "larch alter db bare --filter-prefix 1 --key-types 'u32, string' && larch tables db bare",
        "larch alter db bare --filter-prefix 1 && larch tables db bare",
    ),
    ("alter --json", "larch alter db t --filter-prefix 1 --json", ""),
    (
        "clone --at",
        "larch clone db raw new --at before > said && larch scan db new",
        "larch clone db raw new > said && larch scan db new",
    ),
    ("clone --json", "larch clone db t new --json", ""),
    ("split-off --json", "larch split-off db t 0200 new --json", ""),
    (
        "split-off --key-types",
        "larch split-off db bare '(0)' new --key-types 'u32, string' && larch scan db bare",
        "larch split-off db bare '(0)' new && larch scan db bare",
    ),
    (
        "index create --columns",
        "larch index create db t new --columns 2 && larch index list db",
        "larch index create db t new --columns 3 && larch index list db",
    ),
    (
        "index create --unique",
        "larch index create db i new 'value string' --unique",
        "larch index create db i new 'value string'",
    ),
    ("index check --json", "larch index check db --json", ""),
    ("index list --json", "larch index list db --json", ""),
    ("check --json", "larch check db --json", ""),
    ("repair --json", "larch repair db saved --json", ""),
    (
        "checkpoint --at",
        "larch checkpoint db copy --at before > said && larch scan copy raw",
        "larch checkpoint db copy > said && larch scan copy raw",
    ),
    ("checkpoint --json", "larch checkpoint db copy --json", ""),
    (
        "backup --at",
        "larch backup db new --at before > said && larch restore new again > said && larch scan again raw",
        "larch backup db new > said && larch restore new again > said && larch scan again raw",
    ),
    ("backup --keep", "larch backup db kept --keep 1", ""),
    ("backup --json", "larch backup db kept --json", ""),
    ("backups --json", "larch backups kept --json", ""),
    ("kept --json", "larch kept db --json | sed 's/since.*//'", ""),
    ("retain --versions", "larch retain db --versions 5 | sed 's/since.*//'", ""),
    ("retain --time", "larch retain db --time 7d | sed 's/since.*//'", ""),
    (
        "retain --everything",
        "larch retain db --everything | sed 's/since.*//'",
        "larch retain db --nothing | sed 's/since.*//'",
    ),
    ("retain --nothing", "larch retain db --nothing", ""),
    (
        "retain --table",
        "larch retain db --table bare --everything | sed 's/since.*//'",
        "larch retain db --everything | sed 's/since.*//'",
    ),
    (
        "retain --as-others",
        "larch retain db --table bare --as-others | sed 's/since.*//'",
        "larch retain db --table bare --nothing | sed 's/since.*//'",
    ),
    ("retain --json", "larch retain db --json | sed 's/\"since.*//'", ""),
    ("subscribe --age", "larch subscribe db new --age 7d | sed 's/since.*//'", ""),
    ("subscribe --bytes", "larch subscribe db new --bytes 1GiB | sed 's/since.*//'", ""),
    ("subscriptions --json", "larch subscriptions db --json | sed 's/since.*//'", ""),
    (
        "history --key-types",
        "larch history db bare '(1, \"a\")' --key-types 'u32, string'",
        "larch history db bare '(1, \"a\")'",
    ),
    ("history --json", "larch history db raw k1 --json", ""),
    (
        "changes --from",
        r#"larch changes db --from "$(larch retain db --json | sed 's/.*newest":\([0-9]*\).*/\1/')""#,
        "",
    ),
    ("changes --subscription", "larch changes db --subscription mail", ""),
    ("changes --table", "larch changes db --table raw", ""),
    ("changes --most", "larch changes db --most 0", ""),
    ("changes --format", "larch changes db --format jsonl", ""),
    ("changes --before", "larch changes db --format jsonl --before", "larch changes db --format jsonl"),
    (
        "diff --with",
        "larch checkpoint db copy > said && larch put copy raw k9 v && larch diff db raw --with copy",
        "larch checkpoint db copy > said && larch put copy raw k9 v && larch diff db raw before",
    ),
    ("diff --with-table", "larch diff db raw --with-table t", ""),
    ("diff --from", "larch diff db raw before --from k2", ""),
    ("diff --to", "larch diff db raw before --to k1", ""),
    ("diff --prefix", "larch diff db raw before --prefix k0", ""),
    ("diff --key-types", "larch diff db i before --key-types 'u32, string'", "larch diff db i before"),
    ("diff --json", "larch diff db raw before --json", ""),
    ("revert --from", "larch revert db raw before --from k2", ""),
    ("revert --to", "larch revert db raw before --to k1", ""),
    ("revert --prefix", "larch revert db raw before --prefix k0", ""),
    (
        "revert --key-types",
        "larch revert db bare before --from '(1, \"a\")' --key-types 'u32, string'",
        "larch revert db bare before --from '(1, \"a\")'",
    ),
    ("revert --json", "larch revert db raw before --json", ""),
    ("replicate --json", "larch replicate db copy --json", ""),
    ("restore --backup", "larch restore kept again --backup 1", ""),
    ("restore --json", "larch restore kept again --json", ""),
    ("verify-backup --json", "larch verify-backup kept --json", ""),
    ("follow --files", "larch follow db --lines 1 --files", ""),
    ("follow --json", "larch follow db --lines 1 --json", ""),
    ("dump --rows", "larch dump db t --rows", ""),
    ("dump --pages", "larch dump db t --pages", ""),
    ("demo --rows", "larch demo d --rows 200 | grep -v read", ""),
    ("demo --recreate", "larch demo small --rows 200 --recreate", "larch demo small --rows 200"),
    ("demo --json", "larch demo d --rows 100 --json", ""),
    ("plan --rows", "larch plan --rows 1e8 --row-bytes 100", ""),
    ("plan --row-bytes", "larch plan --rows 1e9 --row-bytes 1000", ""),
    ("plan --key-bytes", "larch plan --rows 1e9 --row-bytes 100 --key-bytes 50", ""),
    ("plan --separator-bytes", "larch plan --rows 1e9 --row-bytes 100 --separator-bytes 12", ""),
    ("plan --page", "larch plan --rows 1e9 --row-bytes 100 --page 4KiB", ""),
    ("plan --node", "larch plan --rows 1e9 --row-bytes 100 --node 4KiB", ""),
    ("plan --file-bytes", "larch plan --rows 1e9 --row-bytes 100 --file-bytes 1GiB", ""),
    ("plan --filters", "larch plan --rows 1e9 --row-bytes 100 --filters none", ""),
    ("plan --json", "larch plan --rows 1e9 --row-bytes 100 --json", ""),
];

/// Options for opening a database, which many commands have. Each option comes with a value if it takes one. With
/// `--verbose`, the engine prints the options with which the database was opened. Other tests check what each
/// option does.
const OF_OPENING: &[(&str, &str)] = &[
    ("--cache", "1MiB"),
    ("--write-buffer", "1MiB"),
    ("--durability", "buffered"),
    ("--read-index", "flat"),
    ("--read-only", ""),
    ("--compaction-workers", ""),
    ("--compat", "0.1"),
];

/// Options whose effect is checked by another test, because the check needs more than one line.
const SEEN_ELSEWHERE: &[(&str, &str)] = &[
    ("changes --follow", "past::changes_come_while_another_process_writes"),
    ("replicate --follow", "past::a_replica_takes_each_commit_once_whatever_ends_the_command"),
    ("follow --lines", "follow::follow_ends_with_an_interrupt_and_after_its_lines"),
    ("compaction-worker --jobs", "compaction_worker: it needs a writer that leaves work to it"),
    ("compaction-worker --json", "compaction_worker: it needs a writer that leaves work to it"),
    ("compaction-worker --cache", "nothing prints the memory of a merge; the engine's tests of memory see it"),
];

/// Commands that only other binaries have. For such a command, the default binary says that it cannot do it, and
/// does nothing.
const OF_OTHER_BINARIES: [&str; 6] = ["sql", "sql-scheduler", "sql-executor", "branch", "branches", "drop-database"];

/// The options of all commands, in the form `get --json`. Options of `bench` are tested elsewhere, together with
/// its targets and workloads, and `--color` with the colours.
fn all_options() -> BTreeSet<String> {
    fn collect(command: &clap::Command, path: &str, all: &mut BTreeSet<String>) {
        let below = command.get_subcommands().filter(|command| command.get_name() != "help");
        let mut is_leaf = true;
        for command in below {
            is_leaf = false;
            collect(command, format!("{path} {}", command.get_name()).trim(), all);
        }
        let shown = command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
        for option in shown.filter(|option| is_leaf && !["help", "version", "color"].contains(option)) {
            all.insert(format!("{path} --{option}"));
        }
    }
    let mut command = larch_cli::command();
    command.build();
    let mut all = BTreeSet::new();
    for command in command.get_subcommands().filter(|command| !["bench", "help"].contains(&command.get_name())) {
        collect(command, command.get_name(), &mut all);
    }
    all.retain(|option| !OF_OTHER_BINARIES.iter().any(|name| option.starts_with(&format!("{name} "))));
    all
}

/// A directory with a database, backups, built files and input files. One row of table `t` is only in the log.
fn template() -> Session {
    let session = Session::new();
    let rows: String = (0..400).map(|row| format!("{row:04}\tname {}\tcity {}\n", 400 - row, row % 7)).collect();
    session.file("rows.csv", format!("id\tname\tcity\n{rows}").replace('\t', ","));
    session.file("rows.tsv", rows);
    session.file("few.tsv", "k1\tv1\nk2\tv2\nk3\tv3\n");
    session.file("keys.txt", "0000\n0001\n");
    session.file("tuples.tsv", "(3, \"c\")\tw\n");
    for line in [
        "larch import db t rows.tsv --index both --page 512 --node 512",
        "larch import db g rows.tsv --groups 'hot:2;cold:*'",
        "larch put db raw k0 v0",
        "larch keep db before",
        "larch create-table db bare",
        "larch put db bare '(1, \"a\")' v --key-types 'u32, string'",
        "printf 'k1\\tb\\nk2\\ta\\nk3\\ta\\n' | larch load db i",
        "larch index create db i by 'value string'",
        "larch backup db kept",
        "larch put db raw k1 v1",
        "larch backup db kept",
        "larch build-files few.tsv --out built",
        "larch demo small --rows 100",
        "larch retain db --everything",
        "larch put db other k v",
        "larch subscribe db mail",
    ] {
        let ran = shell(&session, line);
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
    }
    let mut child = session.start(&["load", "db", "t"]);
    child.stdin.as_mut().expect("it was asked for").write_all(b"9999\tlast\tlog\n").expect("larch reads");
    child.stdout.as_mut().expect("it was asked for").read_exact(&mut [0; 5]).expect("larch answers");
    child.kill().expect("it runs until it is killed");
    child.wait().expect("it was started");
    session
}

/// Runs a line in a shell, in the directory of a session. The program is on the path.
fn shell(session: &Session, line: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_larch")).parent().expect("it is in a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("PATH", path).current_dir(session.path("")).stdin(Stdio::null());
    Ran::new(command.output().expect("there is a shell"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a test can make a directory");
    for entry in std::fs::read_dir(from).expect("a test can list its directory") {
        let entry = entry.expect("a test can list its directory");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("a test can copy its files");
        }
    }
}

/// The visible result of a line: its exit code, its output without times and memory, and the names of the files
/// that exist afterwards.
type Seen = (Option<i32>, String, Vec<String>);

fn seen(template: &Session, line: &str) -> Seen {
    let session = Session::new();
    copy(&template.path(""), &session.path(""));
    let ran = shell(&session, line);
    let out = String::from_utf8_lossy(&ran.out).into_owned();
    // With `--verbose`, the engine prints lines that differ from run to run. Only the line is kept that says how
    // the database was opened.
    let is_kept = |told: &&str| !line.contains("--verbose") || told.contains("opened ") || ran.code != Some(0);
    let err: String = ran.err.lines().filter(is_kept).flat_map(|told| [told, "\n"]).collect();
    (ran.code, timeless(&out) + &timeless(&err), session.names())
}

/// A text without the parts that differ from run to run.
fn timeless(text: &str) -> String {
    let is_timed = |piece: &str| ["second", "time", "peak", "_ms", "memory"].iter().any(|part| piece.contains(part));
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with('{') {
            line.split_inclusive(',').filter(|piece| !is_timed(piece)).for_each(|piece| kept += piece);
        } else {
            let words: Vec<&str> = line.split(' ').collect();
            for (at, word) in words.iter().enumerate() {
                let unit = words.get(at + 1).map_or("", |unit| unit.trim_end_matches([',', ':', ';', ')']));
                let is_measured =
                    ["ms", "us", "s", "rows/s"].contains(&unit) || words[..at].ends_with(&["peak", "memory"]);
                if !is_measured {
                    kept += word;
                    kept.push(' ');
                }
            }
        }
        kept.push('\n');
    }
    kept
}

#[test]
fn every_option_of_every_command_does_something() {
    let all = all_options();
    let template = template();
    let mut without: BTreeMap<String, Seen> = BTreeMap::new();
    let mut tried: BTreeSet<String> = SEEN_ELSEWHERE.iter().map(|(option, _)| (*option).to_owned()).collect();
    let mut faults = Vec::new();
    let mut try_one = |option: &str, with: &str, other: &str| {
        tried.insert(option.to_owned());
        let before = without.entry(other.to_owned()).or_insert_with(|| {
            let first = seen(&template, other);
            if !["--verbose", "demo", "explain", "metrics"].iter().any(|part| other.contains(part)) {
                assert_eq!(seen(&template, other), first, "what {other} prints is not the same each time");
            }
            first
        });
        let after = seen(&template, with);
        if *before == after || after.1.contains("unexpected argument") {
            faults.push(format!("{option}\n  {other}\n    {before:?}\n  {with}\n    {after:?}"));
        }
    };
    let line_of = |command: &str| LINES.iter().find(|(name, _)| *name == command).map(|(_, line)| *line);
    for (option, with, other) in TRIED {
        let command = option.split(" --").next().expect("it names a command");
        let other = if other.is_empty() { line_of(command).expect("the command has a line") } else { *other };
        try_one(option, with, other);
    }
    // This loop tries the options for the way in which tables are stored.
    for (option, value) in OF_TABLES {
        let made =
            |command: &str, then: &str| format!("{} {option} {value}{then}", line_of(command).expect("it has one"));
        for (command, then) in [
            ("import", " && larch tables db new"),
            ("create-table", " && larch tables db new"),
            ("build-files", " && larch ingest db new made && larch tables db new"),
        ] {
            let other = format!("{}{then}", line_of(command).expect("it has one"));
            try_one(&format!("{command} {option}"), &made(command, then), &other);
        }
        let [with, other] = [format!(" {option} {value}"), String::new()]
            .map(|more| format!("larch alter db raw --key-types string{more} && larch tables db raw"));
        try_one(&format!("alter {option}"), &with, &other);
    }
    // This loop tries the options for the way in which a database is opened.
    for (command, line) in LINES.iter().filter(|(command, _)| *command != "build-files") {
        let (line, rest) =
            line.split_once(" |").map_or((*line, String::new()), |(line, rest)| (line, format!(" |{rest}")));
        let has = |option: &str| all.contains(&format!("{command} {option}"));
        let told = if has("--verbose") { format!("{line} --verbose") } else { line.to_owned() };
        for (option, value) in OF_OPENING.iter().filter(|(option, _)| has(option)) {
            try_one(
                &format!("{command} {option}"),
                &format!("{told} {option} {value}{rest}"),
                &format!("{told}{rest}"),
            );
        }
        if has("--verbose") {
            try_one(&format!("{command} --verbose"), &format!("{told}{rest}"), &format!("{line}{rest}"));
        }
        if has("--follow") && !FOLLOWING.contains(command) {
            // `--follow` is the default, so its effect is visible only beside `--read-only`, with which it cannot
            // be combined.
            let files = format!("{line} --read-only");
            try_one(&format!("{command} --follow"), &format!("{files} --follow"), &files);
        }
    }
    let untried: Vec<&String> = all.difference(&tried).collect();
    assert!(untried.is_empty(), "no line tries these options: {untried:?}");
    let unknown: Vec<&String> = tried.difference(&all).collect();
    assert!(unknown.is_empty(), "no command has these options: {unknown:?}");
    assert!(faults.is_empty(), "{} options do nothing:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn an_option_that_would_do_nothing_is_refused_and_not_shown() {
    let session = Session::new();
    for (args, parts) in [
        (
            &["get", "db", "t", "k", "--durability", "buffered"][..],
            &["`get` writes no rows", "leave --durability out"][..],
        ),
        (&["--write-buffer", "1MiB", "scan", "db", "t"], &["leave --write-buffer out"]),
        (&["put", "db", "t", "k", "v", "--follow"], &["leave --follow out"]),
        (&["index", "create", "db", "t", "i", "key", "--read-only"], &["leave --read-only out"]),
        (&["index", "list", "db", "--compat", "0.1"], &["leave --compat out"]),
        (&["backups", "kept", "--cache", "1MiB"], &["--cache changes nothing of what `backups` does"]),
        (&["repair", "db", "new", "--cache", "1MiB"], &["--cache changes nothing"]),
        (&["bench", "targets", "--cache", "1MiB"], &["--cache is no option of `bench`", "larch:DIR?cache=64MiB"]),
        (&["bench", "ycsb", "--read-index", "flat"], &["--read-index is no option of `bench`"]),
    ] {
        session.run(args).fails(2, parts);
    }
}

/// The common options, each with a value if it takes one.
fn common_options() -> impl Iterator<Item = (&'static str, &'static str)> {
    OF_OPENING.iter().copied().chain([("--verbose", ""), ("--follow", "")])
}

#[test]
fn the_help_of_a_command_names_the_common_options_that_it_takes_and_no_other() {
    // Without a database, a command fails soon, but it refuses an option before that.
    let session = Session::new();
    session.file("few.tsv", "");
    for (command, line) in LINES {
        let words: Vec<&str> = command.split(' ').collect();
        for form in ["-h", "--help"] {
            let help = session.run(&[&words[..], &[form]].concat()).ok();
            let named = help.lines().find_map(|line| line.strip_prefix("Common options: ")).unwrap_or_default();
            let named: Vec<&str> = named.split(&[',', ' ']).filter(|word| word.starts_with("--")).collect();
            for (option, value) in common_options() {
                if option == "--follow" && FOLLOWING.contains(command) {
                    continue;
                }
                let is_described = described(&help).contains(option);
                assert!(!is_described, "{command} describes {option}: {help}");
                if form == "--help" {
                    let ran = shell(&session, &line.replacen("larch", &format!("larch {option} {value}"), 1));
                    let is_refused =
                        ["leave it out", &format!("leave {option} out")].iter().any(|end| ran.err.contains(*end));
                    assert_eq!(named.contains(&option), !is_refused, "{command} {option}: {help}\n{}", ran.err);
                }
            }
        }
    }
}

/// The options that a help describes, each on a line of its own.
fn described(help: &str) -> BTreeSet<&str> {
    let lines =
        help.lines().map(|line| line.trim_start().trim_start_matches("-v, ")).filter(|line| line.starts_with("--"));
    lines.filter_map(|line| line.split(&[' ', '=', '[', ',']).next()).collect()
}

#[test]
fn no_help_of_bench_lists_a_common_option() {
    fn leaves(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        let below: Vec<_> = command.get_subcommands().filter(|command| command.get_name() != "help").collect();
        if below.is_empty() {
            all.push(path.to_vec());
        }
        for command in below {
            leaves(command, &[path, &[command.get_name().to_owned()]].concat(), all);
        }
    }
    let parser = larch_cli::parser();
    let mut all = vec![vec!["bench".to_owned()]];
    let bench = parser.find_subcommand("bench").expect("it was built with bench");
    leaves(bench, &["bench".to_owned()], &mut all);
    assert!(all.len() > 10, "{all:?}");
    let session = Session::new();
    for path in &all {
        let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = session.run(&words).ok();
        for (option, _) in common_options() {
            // `bench rows` has an option `--compat` of its own.
            let is_own = option == "--compat" && path.get(1).is_some_and(|name| name == "rows");
            assert!(is_own || !described(&help).contains(option), "{path:?} lists {option}: {help}");
        }
        assert!(!help.contains("Common options"), "{path:?}: {help}");
    }
}
