//! No part of a password in a URL is ever shown, whatever is wrong with it.

use incumbent_proving::{SecretUrl, SecretUrls};
use incumbent_store_common::{has_secret, shown, without_secrets};

/// All that can be seen of what a store makes of this URL.
fn seen(url: &str) -> Vec<String> {
    let mut seen = Vec::new();
    macro_rules! parsed {
        ($feature:literal, $options:path) => {
            #[cfg(feature = $feature)]
            {
                use $options as Options;
                seen.push(match Options::parse(url) {
                    Ok(options) => format!("{options:?}"),
                    Err(error) => format!("{error} {error:?}"),
                });
            }
        };
    }
    parsed!("sqlite", incumbent::sqlite::SqliteOptions);
    parsed!("postgres", incumbent::postgres::PostgresOptions);
    parsed!("mysql", incumbent::mysql::MysqlOptions);
    parsed!("redis", incumbent::redis::RedisOptions);
    parsed!("etcd", incumbent::etcd::EtcdOptions);
    parsed!("nats", incumbent::nats::NatsOptions);
    parsed!("object-storage", incumbent::object_storage::BucketOptions);
    seen
}

#[test]
fn o30_no_parser_shows_a_password_of_any_form() {
    let mut understood = 0;
    for secret in SecretUrls::new(30).take(20_000) {
        let SecretUrl { url, .. } = &secret;
        for text in seen(url) {
            understood += usize::from(text.contains("Options {"));
            secret.is_not_in(&text);
        }
        secret.is_not_in(&shown(url));
        secret.is_not_in(&without_secrets(url));
        assert!(has_secret(url), "{url}");
    }
    // Else nothing would be shown of what is understood.
    assert!(understood > 500, "{understood}");
}

#[test]
fn o30_no_error_of_opening_shows_a_password_of_any_form() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for secret in SecretUrls::new(31).take(400) {
        // What would be made in this directory.
        if secret.url.starts_with("sqlite:") {
            continue;
        }
        match runtime.block_on(incumbent::open(&secret.url)) {
            Ok(store) => secret.is_not_in(&format!("{store:?}")),
            Err(error) => secret.is_not_in(&format!("{error} {error:?}")),
        }
    }
}
