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
