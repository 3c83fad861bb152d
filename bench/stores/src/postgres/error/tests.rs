use super::*;

/// How a server error with this SQLSTATE and message is shown.
fn shown(sqlstate: &[u8; 5], message: &str) -> String {
    let error = ServerError {
        severity: "FATAL".to_owned(),
        sqlstate: SqlState(*sqlstate),
        message: message.to_owned(),
        detail: String::new(),
        hint: String::new(),
    };
    error.to_string()
}

#[test]
fn a_user_who_is_not_there_is_told_from_one_whom_the_server_does_not_let_in() {
    let missing = shown(b"28000", "role \"nobody\" does not exist");
    assert!(missing.contains("createuser") && !missing.contains("pg_hba.conf"), "{missing}");
    let kept_out = shown(b"28000", "no pg_hba.conf entry for host \"127.0.0.1\", user \"ann\", no encryption");
    assert!(kept_out.contains("let this user in by pg_hba.conf") && kept_out.contains("sslmode"), "{kept_out}");
    for error in [missing, kept_out] {
        assert!(!error.contains("TLS is not supported"), "{error}");
    }
}

#[test]
fn a_pool_of_transactions_is_named_with_what_to_use_instead() {
    for (sqlstate, message) in
        [(b"42P05", "prepared statement \"0\" already exists"), (b"26000", "prepared statement \"0\" does not exist")]
    {
        assert!(shown(sqlstate, message).contains("pool_mode=session"), "{message}");
    }
    let refused = shown(b"08P01", "unsupported startup parameter: plan_cache_mode");
    assert!(refused.contains("name the server itself"), "{refused}");
    assert!(!shown(b"08P01", "invalid message format").contains("PgBouncer"));
}
