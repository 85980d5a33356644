//! What an answer of the server means for the write that it answers.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use common::canned::Canned;
use common::{block_on, create, put, write};
use incumbent_core::store::{ErrorKind, Expect, Key, Outcome, Version, Write};
use incumbent_object::{BucketOptions, BucketStore, Cloud};

async fn s3(server: &Canned) -> BucketStore {
    let options = BucketOptions::new(Cloud::S3, "bucket")
        .prefix("p")
        .setting("endpoint", format!("http://127.0.0.1:{}", server.port))
        .setting("allow_http", "true")
        .setting("region", "here")
        .setting("access_key_id", "me")
        .setting("secret_access_key", "s3cret");
    BucketStore::connect_with(options).await.expect("a store")
}

fn update() -> Write {
    put("k", Expect::Version(Version::new("1.1 - \"x\"")), "{}")
}

#[test]
fn a_write_that_was_declined_by_comparison_is_refused() {
    block_on(async {
        let server = Canned::start().await;
        let store = s3(&server).await;
        for (status, code) in [
            (412, "PreconditionFailed"),
            // Two conditional writes met; neither this one nor a retry of it was applied.
            (409, "ConditionalRequestConflict"),
        ] {
            server.answer(status, code);
            assert_eq!(write(&store, create("k")).await, Ok(Outcome::Refused), "{status} {code}");
            assert_eq!(write(&store, update()).await, Ok(Outcome::Refused), "{status} {code}");
        }
        server.answer(404, "NoSuchKey");
        assert_eq!(write(&store, update()).await, Ok(Outcome::Refused));
        assert_eq!(write(&store, Write::Delete(Key::new("k"))).await, Ok(Outcome::Deleted));
    });
}

#[test]
fn errors_say_no_more_than_is_known() {
    use ErrorKind::{Rejected, Unavailable, Unknown};
    block_on(async {
        let server = Canned::start().await;
        let store = s3(&server).await;
        for (status, code, kind, step) in [
            (503, "SlowDown", Unavailable, ""),
            (429, "TooManyRequests", Unavailable, ""),
            (503, "ServiceUnavailable", Unknown, ""),
            (500, "InternalError", Unknown, ""),
            (502, "", Unknown, ""),
            (504, "", Unknown, ""),
            (403, "AccessDenied", Rejected, "AWS_ACCESS_KEY_ID"),
            (401, "Unauthorized", Rejected, "AWS_ACCESS_KEY_ID"),
            (403, "RequestTimeTooSkewed", Rejected, "clock"),
            (404, "NoSuchBucket", Rejected, "aws s3 mb s3://bucket"),
            (501, "NotImplemented", Rejected, "conditional writes"),
            (301, "PermanentRedirect", Rejected, "region="),
            (400, "ExpiredToken", Rejected, ""),
        ] {
            server.answer(status, code);
            for attempt in [create("k"), update(), Write::Delete(Key::new("k"))] {
                let error = write(&store, attempt).await.expect_err(code);
                assert_eq!(error.kind, kind, "{status} {code}: {error}");
                assert!(error.message.contains("s3://bucket/p"), "{error}");
                assert!(error.message.contains(step), "{status} {code}: {error}");
                assert!(!error.message.contains("s3cret"), "{error}");
            }
        }
    });
}

/// A success without an ETag has been applied, but nothing could ever be compared with it.
#[test]
fn a_success_that_can_not_be_compared_with_is_unknown() {
    block_on(async {
        let server = Canned::start().await;
        let store = s3(&server).await;
        server.answer(200, "");
        let error = write(&store, create("k")).await.expect_err("no ETag");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
    });
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    block_on(async {
        let server = Canned::start().await;
        let url = "s3://b?region=x&skip_signature=true&allow_http=true&endpoint=http://127.0.0.1:1";
        let error = BucketStore::connect(url).await.expect_err("nobody there");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(error.message.contains("endpoint"), "{error}");
        // Without leave, nothing is sent unencrypted.
        let plain = format!(
            "s3://b?region=x&skip_signature=true&endpoint=http://127.0.0.1:{}",
            server.port
        );
        BucketStore::connect(&plain).await.expect_err("allow_http isn't set");
    });
}
