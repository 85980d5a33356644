//! `incumbent store schema`: what incumbent creates in the store, and the least rights there.

use incumbent::sqlite::SqliteOptions;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
use incumbent::store::Access;

use crate::exit::{Failure, Outcome};
use crate::out::say;
use crate::session::Session;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Nothing is opened and nothing is changed. If you may not create tables, buckets and users, give it
to somebody who may. A password in the URL is not printed.

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
            let (schema, grants) = (options.schema_sql(), options.grants_sql());
            Some(sql(&schema, &grants, &options.access(Access::Look).grants_sql()))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            let options = incumbent::mysql::MysqlOptions::parse(url).map_err(Failure::usage)?;
            let (schema, grants) = (options.schema_script(), options.grants_sql());
            Some(sql(&schema, &grants, &options.access(Access::Look).grants_sql()))
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" => {
            let options = incumbent::redis::RedisOptions::parse(url).map_err(Failure::usage)?;
            let rights = options.acl();
            Some(format!(
                "{NOTHING} {LEAST}\n{rights}\n\n{LOOK}\n{}",
                options.access(Access::Look).acl()
            ))
        }
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => {
            let options = incumbent::etcd::EtcdOptions::parse(url).map_err(Failure::usage)?;
            let rights = options.rights();
            Some(format!(
                "{NOTHING} {LEAST}\n{rights}\n{LOOK}\n{}",
                options.access(Access::Look).rights()
            ))
        }
        #[cfg(feature = "nats")]
        "nats" | "tls" => {
            let options = incumbent::nats::NatsOptions::parse(url).map_err(Failure::usage)?;
            let (command, rights) = (options.schema_command(), options.permissions());
            let look = options.access(Access::Look).permissions();
            Some(format!(
                "# The bucket:\n{command}\n\n# The least rights:\n{rights}\n\n{LOOK}\n{look}"
            ))
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

#[cfg(any(feature = "redis", feature = "etcd"))]
const LEAST: &str = "A user with the least rights:";

#[cfg(any(feature = "redis", feature = "etcd", feature = "nats"))]
const LOOK: &str = "# Enough for one who only looks (status, watch and so on):";

/// The tables for whoever may make them, and the grants for roles that may not.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn sql(schema: &str, grants: &str, look: &str) -> String {
    let comment = |text: &str| {
        let lines: Vec<String> = text.lines().map(|line| format!("-- {line}")).collect();
        lines.join("\n")
    };
    format!(
        "{}\n\n-- Once the tables are there, these rights are enough:\n{}\n\n\
         -- And these for one who only looks (status, watch and so on):\n{}",
        schema.trim_end(),
        comment(grants),
        comment(look)
    )
}

fn unknown(session: &Session) -> Failure {
    Failure::usage(format!(
        "{:?} is not a known store: this program knows {}",
        session.place.shown(),
        incumbent::schemes().join(", ")
    ))
}
