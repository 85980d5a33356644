//! `incumbent store schema`: what incumbent creates in the store, and the least rights there.

use incumbent::sqlite::SqliteOptions;

use crate::exit::{Failure, Outcome};
use crate::out::say;
use crate::session::Session;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Nothing is opened and nothing is changed. Hand it to whoever may create tables, buckets and users
where you may not. A password in the URL is not printed.

Examples:
  incumbent store schema sqlite:app.db
  incumbent store schema postgres://app@db/app | psql postgres://owner@db/app
  incumbent store schema redis://app@cache";

/// Prints it.
pub(crate) fn run(session: &Session) -> Outcome {
    let url = &session.place.url;
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "sqlite" => {
            let options = SqliteOptions::parse(url).map_err(Failure::usage)?;
            say!("{}", options.schema().trim_end());
            Ok(())
        }
        "memory" | "solo" => {
            session.remark("A store in memory needs nothing created.");
            Ok(())
        }
        _ => {
            let text = text(scheme, url)?.ok_or_else(|| unknown(session))?;
            say!("{}", text.trim_end());
            Ok(())
        }
    }
}

/// What a store with a server needs; nothing if this program wasn't built with it.
#[allow(unused_variables, reason = "without any of the features nothing is printed")]
fn text(scheme: &str, url: &str) -> Outcome<Option<String>> {
    Ok(match scheme {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let options = incumbent::postgres::PostgresOptions::parse(url);
            let options = options.map_err(Failure::usage)?;
            Some(sql(&options.schema_sql(), &options.grants_sql()))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            let options = incumbent::mysql::MysqlOptions::parse(url).map_err(Failure::usage)?;
            Some(sql(&options.schema_sql(), &options.grants_sql()))
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" => {
            let options = incumbent::redis::RedisOptions::parse(url).map_err(Failure::usage)?;
            Some(format!("{NOTHING} A user with the least rights:\n{}", options.acl()))
        }
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => {
            let options = incumbent::etcd::EtcdOptions::parse(url).map_err(Failure::usage)?;
            Some(format!("{NOTHING} A user with the least rights:\n{}", options.rights()))
        }
        #[cfg(feature = "nats")]
        "nats" | "tls" => {
            let options = incumbent::nats::NatsOptions::parse(url).map_err(Failure::usage)?;
            let (command, rights) = (options.schema_command(), options.permissions());
            Some(format!("# The bucket:\n{command}\n\n# The least rights:\n{rights}"))
        }
        #[cfg(feature = "object-storage")]
        "s3" | "gs" | "az" | "azure" => {
            let options = incumbent::object_storage::BucketOptions::parse(url);
            let options = options.map_err(Failure::usage)?;
            Some(format!("# Nothing but the bucket itself:\n{}", options.create_command()))
        }
        _ => None,
    })
}

#[cfg(any(feature = "redis", feature = "etcd"))]
const NOTHING: &str = "# There is nothing to create.";

/// The tables for whoever may make them, and the grants for a role that may not.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn sql(schema: &str, grants: &str) -> String {
    let grants: Vec<String> = grants.trim_end().lines().map(|line| format!("-- {line}")).collect();
    format!(
        "{}\n\n-- Once the tables are there, these rights are enough:\n{}",
        schema.trim_end(),
        grants.join("\n")
    )
}

fn unknown(session: &Session) -> Failure {
    Failure::usage(format!(
        "{:?} is no store: this program knows {}",
        session.place.shown(),
        incumbent::schemes().join(", ")
    ))
}
