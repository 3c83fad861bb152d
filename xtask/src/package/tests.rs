use super::{Package, complete, published_in};
use serde_json::json;

#[test]
fn a_published_package_says_what_a_registry_shows() {
    let metadata = json!({
        "workspace_default_members": ["whole 1"],
        "packages": [
            { "id": "private 1", "name": "private", "publish": [], "manifest_path": "/tree/private/Cargo.toml" },
            {
                "id": "whole 1", "name": "whole", "publish": null, "manifest_path": "/tree/whole/Cargo.toml",
                "description": "all", "license": "MIT", "documentation": "https://docs.rs/whole", "keywords": ["all"],
                "categories": ["database"], "repository": "https://example.com", "features": { "sql": [] },
                "metadata": { "docs": { "rs": { "all-features": true } } },
            },
            {
                "id": "bare 1", "name": "bare", "publish": null, "manifest_path": "/tree/bare/Cargo.toml",
                "description": "all", "license": "MIT", "documentation": null, "keywords": [], "categories": ["x"],
                "repository": "", "features": { "sql": [] }, "metadata": null,
            },
        ],
    });
    let packages =
        published_in(&metadata, |manifest, file| !(manifest.starts_with("/tree/bare") && file.ends_with("MIT")));
    let [whole, bare] = &packages[..] else { panic!("{packages:?}") };
    let expected = Package { name: "whole".to_owned(), is_default: true, missing: vec![], has_repository: true };
    assert_eq!(whole, &expected);
    assert!(!bare.is_default && !bare.has_repository);
    assert_eq!(bare.missing[..2], ["documentation", "keywords"]);
    assert!(bare.missing[2].contains("docs.rs"));
    assert_eq!(bare.missing[3..], ["LICENSE-MIT"]);
    assert_eq!(complete(std::slice::from_ref(whole)), Ok(()));
    let why = complete(&packages).expect_err("one lacks something");
    assert!(
        why.starts_with("bare has no documentation, no keywords, no ") && why.ends_with(", no LICENSE-MIT"),
        "{why}"
    );
}
