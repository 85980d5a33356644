//! What the URLs of each store look like: the one table of their parameters, which says what each may
//! be and which are secret.

use std::ops::RangeInclusive;

/// What the URLs of one kind of store look like.
#[derive(Debug)]
pub struct Form {
    /// Its name in messages.
    pub name: &'static str,
    /// What may stand before the colon.
    pub schemes: &'static [&'static str],
    /// What to write.
    pub example: &'static str,
    /// What may follow the question mark.
    pub parameters: &'static [Parameter],
    /// Whether the store itself knows more parameters than these. Nobody may see their values.
    pub others: bool,
    /// Whether a user without a password is a token, and a secret.
    pub lone_user_is_token: bool,
}

/// Something that may be set in a URL.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What its value may be.
    pub kind: Kind,
}

/// What the value of a parameter may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text, which the store looks at.
    Text,
    /// Any text, which nobody may see.
    Secret,
    /// The path of a file.
    File,
    /// Milliseconds.
    Span(RangeInclusive<u64>),
    /// A number.
    Number(RangeInclusive<u64>),
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl Form {
    /// The form of URLs with this scheme.
    #[must_use]
    pub fn of(scheme: &str) -> Option<&'static Self> {
        ALL.iter().copied().find(|form| form.schemes.contains(&scheme))
    }

    /// What the value of this parameter may be, if there is one of this name.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&'static Kind> {
        let found = self.parameters.iter().find(|parameter| parameter.name == name);
        found.map(|parameter| &parameter.kind)
    }

    /// Whether anybody may see the value of this parameter.
    #[must_use]
    pub fn is_open(&self, name: &str) -> bool {
        self.kind(name).is_some_and(|kind| *kind != Kind::Secret)
    }

    /// SQLite. Its URLs have a path where others have hosts.
    pub const SQLITE: &'static Self = &Self {
        parameters: &[
            text("prefix"),
            Parameter { name: "busy", kind: Kind::Span(0..=MINUTE) },
            choice("synchronous", &["full", "normal"]),
            choice("create", &["yes", "no"]),
            choice("hints", &["watch", "poll"]),
        ],
        ..Self::plain("SQLite", &["sqlite"], "sqlite:app.db")
    };

    /// PostgreSQL: what libpq knows, as far as it means something here, and our own.
    pub const POSTGRES: &'static Self = &Self {
        parameters: &[
            text("schema"),
            text("prefix"),
            file("passwordfile"),
            file("passfile"),
            span("lock_timeout"),
            Parameter { name: "statement_timeout", kind: Kind::Span(1..=10 * MINUTE) },
            choice("pooler", &["detect", "yes"]),
            text("sslmode"),
            text("ssl"),
            file("sslrootcert"),
            file("sslcert"),
            file("sslkey"),
            text("sslnegotiation"),
            text("sslcrl"),
            text("sslcrldir"),
            text("require_auth"),
            text("channel_binding"),
            text("host"),
            text("hostaddr"),
            text("port"),
            text("user"),
            text("dbname"),
            text("options"),
            text("application_name"),
            text("fallback_application_name"),
            text("client_encoding"),
            text("gssencmode"),
            text("connect_timeout"),
            text("tcp_user_timeout"),
            text("keepalives"),
            text("keepalives_idle"),
            text("keepalives_interval"),
            text("keepalives_retries"),
            text("target_session_attrs"),
            text("load_balance_hosts"),
            secret("password"),
            secret("sslpassword"),
        ],
        ..Self::plain("PostgreSQL", &["postgres", "postgresql"], "postgres://user@host/database")
    };

    /// MySQL and MariaDB.
    pub const MYSQL: &'static Self = &Self {
        parameters: &[
            text("prefix"),
            file("passwordfile"),
            text("socket"),
            text("ssl-mode"),
            file("ssl-ca"),
            file("ssl-cert"),
            file("ssl-key"),
            text("ssl-hostname"),
            Parameter { name: "connect_timeout", kind: Kind::Span(1..=10 * MINUTE) },
            Parameter { name: "timeout", kind: Kind::Span(1..=10 * MINUTE) },
        ],
        ..Self::plain("MySQL", &["mysql", "mariadb"], "mysql://user@host/database")
    };

    /// Redis and Valkey.
    pub const REDIS: &'static Self = &Self {
        parameters: &[
            text("prefix"),
            file("passwordfile"),
            file("cafile"),
            file("certfile"),
            file("keyfile"),
            span("connect_timeout"),
            span("timeout"),
            Parameter { name: "wait", kind: Kind::Number(0..=1_000) },
            choice("eviction", &["refuse", "allow"]),
            choice("hints", &["push", "off"]),
        ],
        ..Self::plain("Redis", &["redis", "rediss"], "redis://host:6379, or rediss:// for TLS")
    };

    /// etcd.
    pub const ETCD: &'static Self = &Self {
        parameters: &[
            file("cafile"),
            file("certfile"),
            file("keyfile"),
            file("passwordfile"),
            span("timeout"),
            span("connect_timeout"),
        ],
        ..Self::plain("etcd", &["etcd", "etcds"], "etcd://host:2379/prefix, or etcds:// for TLS")
    };

    /// NATS.
    pub const NATS: &'static Self = &Self {
        parameters: &[
            text("bucket"),
            Parameter { name: "replicas", kind: Kind::Number(1..=5) },
            file("passwordfile"),
            file("tokenfile"),
            file("creds"),
            file("nkey"),
            file("cafile"),
            file("certfile"),
            file("keyfile"),
            choice("tls_first", &["true", "false"]),
            text("inbox"),
            span("connect_timeout"),
            span("timeout"),
            choice("hints", &["push", "off"]),
        ],
        lone_user_is_token: true,
        ..Self::plain("NATS", &["nats", "tls"], "nats://host:4222, or tls:// for encryption")
    };

    /// Object storage. It has many more parameters, of which some are secret.
    pub const OBJECT: &'static Self = &Self {
        parameters: &[
            span("timeout"),
            Parameter { name: "requests", kind: Kind::Number(1..=1_000) },
            file("ca"),
            choice("etag", &["quoted", "bare"]),
            choice("create", &["yes", "no"]),
            text("region"),
            text("default_region"),
            text("endpoint"),
            text("endpoint_url"),
            text("base_url"),
            text("allow_http"),
            text("virtual_hosted_style_request"),
            text("access_key_id"),
            text("role_arn"),
            text("role_session_name"),
            text("imdsv1_fallback"),
            text("skip_signature"),
            text("unsigned_payload"),
            text("checksum_algorithm"),
            file("secret_access_key_file"),
            file("session_token_file"),
            file("application_credentials"),
            file("service_account"),
            file("service_account_path"),
            file("service_account_key_file"),
            text("account_name"),
            file("account_key_file"),
            file("sas_token_file"),
            file("client_secret_file"),
            file("bearer_token_file"),
            text("use_emulator"),
            text("client_id"),
            text("tenant_id"),
        ],
        others: true,
        lone_user_is_token: true,
        ..Self::plain(
            "object storage",
            &["s3", "s3a", "gs", "az", "azure"],
            "s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
        )
    };

    const fn plain(
        name: &'static str,
        schemes: &'static [&'static str],
        example: &'static str,
    ) -> Self {
        let parameters = &[];
        Self { name, schemes, example, parameters, others: false, lone_user_is_token: false }
    }
}

const ALL: [&Form; 7] =
    [Form::SQLITE, Form::POSTGRES, Form::MYSQL, Form::REDIS, Form::ETCD, Form::NATS, Form::OBJECT];

/// In milliseconds. Few things are waited for longer.
const MINUTE: u64 = 60_000;

const fn text(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Text }
}

const fn secret(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Secret }
}

const fn file(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::File }
}

const fn span(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Span(1..=MINUTE) }
}

const fn choice(name: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter { name, kind: Kind::Choice(words) }
}
