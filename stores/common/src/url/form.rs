//! What the URLs of each store look like: the one table that says which options are secret.

/// What the URLs of one kind of store look like.
#[derive(Debug)]
pub struct Form {
    /// Its name in messages.
    pub name: &'static str,
    /// What may stand before the colon.
    pub schemes: &'static [&'static str],
    /// What to write.
    pub example: &'static str,
    /// The options whose values anybody may see.
    pub open: &'static [&'static str],
    /// The options whose values nobody may see.
    pub secret: &'static [&'static str],
    /// Whether a user without a password is a token, and a secret.
    pub lone_user_is_token: bool,
}

impl Form {
    /// The form of URLs with this scheme.
    #[must_use]
    pub fn of(scheme: &str) -> Option<&'static Self> {
        ALL.iter().copied().find(|form| form.schemes.contains(&scheme))
    }

    /// Whether there is such an option.
    #[must_use]
    pub fn knows(&self, option: &str) -> bool {
        self.open.contains(&option) || self.secret.contains(&option)
    }

    /// SQLite. Its URLs have a path where others have hosts.
    pub const SQLITE: &'static Self = &Self {
        name: "SQLite",
        schemes: &["sqlite"],
        example: "sqlite:app.db",
        open: &["prefix", "busy", "synchronous", "create", "hints"],
        secret: &[],
        lone_user_is_token: false,
    };

    /// PostgreSQL: what libpq knows, as far as it means something here, and our own.
    pub const POSTGRES: &'static Self = &Self {
        name: "PostgreSQL",
        schemes: &["postgres", "postgresql"],
        example: "postgres://user@host/database",
        open: &[
            "schema",
            "prefix",
            "passwordfile",
            "passfile",
            "lock_timeout",
            "statement_timeout",
            "pooler",
            "sslmode",
            "ssl",
            "sslrootcert",
            "sslcert",
            "sslkey",
            "sslnegotiation",
            "sslcrl",
            "sslcrldir",
            "require_auth",
            "channel_binding",
            "host",
            "hostaddr",
            "port",
            "user",
            "dbname",
            "options",
            "application_name",
            "fallback_application_name",
            "client_encoding",
            "gssencmode",
            "connect_timeout",
            "tcp_user_timeout",
            "keepalives",
            "keepalives_idle",
            "keepalives_interval",
            "keepalives_retries",
            "target_session_attrs",
            "load_balance_hosts",
        ],
        secret: &["password", "sslpassword"],
        lone_user_is_token: false,
    };

    /// MySQL and MariaDB.
    pub const MYSQL: &'static Self = &Self {
        name: "MySQL",
        schemes: &["mysql", "mariadb"],
        example: "mysql://user@host/database",
        open: &[
            "prefix",
            "passwordfile",
            "socket",
            "ssl-mode",
            "ssl-ca",
            "ssl-cert",
            "ssl-key",
            "ssl-hostname",
            "connect_timeout",
            "timeout",
        ],
        secret: &[],
        lone_user_is_token: false,
    };

    /// Redis and Valkey.
    pub const REDIS: &'static Self = &Self {
        name: "Redis",
        schemes: &["redis", "rediss"],
        example: "redis://host:6379, or rediss:// for TLS",
        open: &[
            "prefix",
            "passwordfile",
            "cafile",
            "certfile",
            "keyfile",
            "connect_timeout",
            "timeout",
            "wait",
            "eviction",
            "hints",
        ],
        secret: &[],
        lone_user_is_token: false,
    };

    /// etcd.
    pub const ETCD: &'static Self = &Self {
        name: "etcd",
        schemes: &["etcd", "etcds"],
        example: "etcd://host:2379/prefix, or etcds:// for TLS",
        open: &["cafile", "certfile", "keyfile", "passwordfile", "timeout", "connect_timeout"],
        secret: &[],
        lone_user_is_token: false,
    };

    /// NATS.
    pub const NATS: &'static Self = &Self {
        name: "NATS",
        schemes: &["nats", "tls"],
        example: "nats://host:4222, or tls:// for encryption",
        open: &[
            "bucket",
            "replicas",
            "passwordfile",
            "tokenfile",
            "creds",
            "nkey",
            "cafile",
            "certfile",
            "keyfile",
            "tls_first",
            "inbox",
            "connect_timeout",
            "timeout",
            "hints",
        ],
        secret: &[],
        lone_user_is_token: true,
    };

    /// Object storage. It has many more options, of which some are secret: none of them is shown.
    pub const OBJECT: &'static Self = &Self {
        name: "object storage",
        schemes: &["s3", "s3a", "gs", "az", "azure"],
        example: "s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
        open: &[
            "timeout",
            "requests",
            "ca",
            "etag",
            "create",
            "region",
            "default_region",
            "endpoint",
            "endpoint_url",
            "base_url",
            "allow_http",
            "virtual_hosted_style_request",
            "access_key_id",
            "role_arn",
            "role_session_name",
            "imdsv1_fallback",
            "skip_signature",
            "unsigned_payload",
            "checksum_algorithm",
            "secret_access_key_file",
            "session_token_file",
            "application_credentials",
            "service_account",
            "service_account_path",
            "service_account_key_file",
            "account_name",
            "account_key_file",
            "sas_token_file",
            "client_secret_file",
            "bearer_token_file",
            "use_emulator",
            "client_id",
            "tenant_id",
        ],
        secret: &[],
        lone_user_is_token: true,
    };
}

const ALL: [&Form; 7] =
    [Form::SQLITE, Form::POSTGRES, Form::MYSQL, Form::REDIS, Form::ETCD, Form::NATS, Form::OBJECT];
