//! URLs with a password in them, of every form in which people write one.

/// A URL with a secret in it.
#[derive(Clone, Debug)]
pub struct SecretUrl {
    /// The URL.
    pub url: String,
    /// Pieces of the secret, none of which may be seen anywhere.
    pub pieces: Vec<String>,
}

impl SecretUrl {
    /// Fails if a piece of the secret is in this.
    #[track_caller]
    pub fn is_not_in(&self, text: &str) {
        for piece in &self.pieces {
            assert!(!text.contains(piece), "{:?} shows {piece:?}: {text}", self.url);
        }
    }
}

/// As many such URLs as wanted, the same for the same seed.
#[derive(Debug)]
pub struct SecretUrls {
    state: u64,
}

/// What is between pieces of a password. Much of it means something in a URL.
const SEPARATORS: &[&str] = &[
    "/",
    "?",
    "#",
    "@",
    "%",
    " ",
    "&",
    "=",
    ":",
    ";",
    "+",
    ",",
    "\\",
    "\"",
    "'",
    "$",
    "!",
    "|",
    "~",
    "é",
    "//",
    "://",
    "?password=",
    "@db/",
    "%zz",
    "%2F",
    "%40",
    "&x=",
    "[",
    "]",
    "\t",
    "\u{202e}",
];

const SCHEMES: &[&str] = &[
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "redis",
    "rediss",
    "etcd",
    "etcds",
    "nats",
    "tls",
    "s3",
    "gs",
    "az",
    "sqlite",
    "rdis",
    "POSTGRES",
    "http",
];

/// How an option is called, or mistyped, that holds a secret.
const OPTIONS: &[&str] = &[
    "password",
    "pasword",
    "Password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "token",
    "auth",
    "key",
    "secret_access_key",
    "session_token",
    "account_key",
    "sas_token",
    "client_secret",
    "service_account_key",
    "sslpassword",
    "password%20",
    "api-key",
];

impl SecretUrls {
    /// A list that hangs on nothing but the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % (bound as u64)).expect("it is below a usize")
    }

    fn one_of(&mut self, list: &'static [&'static str]) -> &'static str {
        list.get(self.below(list.len())).expect("a list with something in it")
    }

    /// A part of a password that can't be found by chance.
    fn piece(&mut self) -> String {
        let number = 1_000_000 + self.below(8_999_999);
        if self.below(4) == 0 { number.to_string() } else { format!("zq{number}x") }
    }

    fn password(&mut self) -> (String, Vec<String>) {
        let pieces: Vec<String> = (0..=self.below(4)).map(|_| self.piece()).collect();
        let mut password = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 || self.below(4) == 0 {
                let separator = self.one_of(SEPARATORS);
                password.push_str(&self.escaped(separator));
            }
            password.push_str(piece);
        }
        if self.below(4) == 0 {
            let separator = self.one_of(SEPARATORS);
            password.push_str(&self.escaped(separator));
        }
        (password, pieces)
    }

    /// As it should be written, half of the time.
    fn escaped(&mut self, text: &str) -> String {
        if self.below(2) == 0 {
            return text.to_owned();
        }
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    fn tail(&mut self) -> &'static str {
        self.one_of(&[
            "",
            "/",
            "/app",
            "/0",
            "/app?timeout=100",
            "?prefix=x_",
            "?prefix=x_&color=red",
        ])
    }
}

impl Iterator for SecretUrls {
    type Item = SecretUrl;

    fn next(&mut self) -> Option<SecretUrl> {
        let (password, pieces) = self.password();
        let (scheme, option) = (self.one_of(SCHEMES), self.one_of(OPTIONS));
        // Nothing answers there, and at once.
        let host = self.one_of(&["127.0.0.1:1", "127.0.0.1:1", "[::1]:1", "127.0.0.1:1,[::1]:1"]);
        let tail = self.tail();
        let url = match self.below(12) {
            0..=3 => format!("{scheme}://me:{password}@{host}{tail}"),
            4 => format!("{scheme}://:{password}@{host}{tail}"),
            5 | 6 => format!("{scheme}://me@{host}/app?{option}={password}"),
            7 => format!("{scheme}://{host}?prefix=x_&{option}={password}&{option}={password}"),
            8 => format!("{scheme}:me:{password}@{host}{tail}"),
            9 => format!("{scheme}:/me:{password}@{host}{tail}"),
            10 => format!("s3://b?endpoint=http://me:{password}@{host}"),
            // A file may have any name.
            _ if scheme == "sqlite" => format!("sqlite:app.db?{option}={password}"),
            // The host was forgotten. What follows an @ then can't be told from one.
            _ => format!("{scheme}://me:{}{tail}", password.replace('@', "%40")),
        };
        Some(SecretUrl { url, pieces })
    }
}
