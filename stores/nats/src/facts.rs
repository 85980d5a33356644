//! What the server says about itself.

/// What was found out about the server and the bucket when the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The server's version, such as `2.9.10`.
    pub version: String,
    /// How many servers keep the bucket. With fewer than three, the loss of one machine loses or
    /// stops it.
    pub replicas: u32,
    /// Whether the server is one of several.
    pub clustered: bool,
    /// The largest message that it takes, in bytes.
    pub max_payload: usize,
}

impl Facts {
    /// What an operator should know, each a whole sentence.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![
            "A server can't be asked how often it syncs its files. Unless sync_interval is \
             always, the writes of two minutes may be gone, terms included, when all machines \
             that keep the bucket lose their power together."
                .to_owned(),
        ];
        if self.clustered && self.replicas < 3 {
            warnings.push(format!(
                "The bucket is kept by {} of several servers: without that one nobody can lead, \
                 and what it loses is lost. Give the bucket 3 replicas.",
                self.replicas
            ));
        }
        warnings
    }
}
