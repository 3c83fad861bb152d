use super::*;

#[test]
fn passwords_are_not_written_down() {
    for (target, shown) in [
        ("postgres://me:secret@host/base", "postgres://me:***@host/base"),
        ("postgres://me@host:5432/base", "postgres://me@host:5432/base"),
        ("--target=postgres://me:a@b", "--target=postgres://me:***@b"),
        ("postgres://me:p@ss:w@host/base", "postgres://me:***@host/base"),
        ("postgres://me:p@ss", "postgres://me:***@ss"),
        ("postgres://me:a/b@host/base", "postgres://me:***@host/base"),
        ("postgres://me@host/base?password=secret&port=1", "postgres://me@host/base?password=***&port=1"),
        ("postgres://me:s@host/base?connections=2", "postgres://me:***@host/base?connections=2"),
        ("db.passwd=secret", "db.passwd=***"),
        ("--property=db.passwd=secret", "--property=db.passwd=***"),
        ("larch:some/folder?cache=64MiB", "larch:some/folder?cache=64MiB"),
        ("postgres://me:se@cret@host/base?port=5433", "postgres://me:***@host/base?port=5433"),
        ("postgres:///base?user=me&password=secret&port=1", "postgres:///base?user=me&password=***&port=1"),
        ("postgres://me:pa?ss@host/db?password=x", "postgres://me:***@host/db?password=***"),
        ("postgres://odd:se/cr@127.0.0.1:1/x", "postgres://odd:***@127.0.0.1:1/x"),
        ("postgres://odd:/secret@127.0.0.1:1/x", "postgres://odd:***@127.0.0.1:1/x"),
        ("postgres://odd:s@se/cr@127.0.0.1:1/x", "postgres://odd:***@127.0.0.1:1/x"),
        ("postgres://odd:s#e%c@127.0.0.1:1/x", "postgres://odd:***@127.0.0.1:1/x"),
        ("postgres://odd:a?password=b@127.0.0.1/x", "postgres://odd:***"),
        ("postgres://h:1/x?password=se@cret&sslmode=bad", "postgres://h:***&sslmode=bad"),
        ("postgres://u:p@h/x?password=a&application_name=a@b", "postgres://u:***@b"),
        ("cassandra://ann:se/cret@db1,db2:9043/keyspace", "cassandra://ann:***@db1,db2:9043/keyspace"),
    ] {
        assert_eq!(without_password(target), shown);
    }
}
