use serde::{Deserialize, Serialize};

/// Where hints for a member go: a socket that takes datagrams, and which of the nodes behind it is
/// meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Control {
    /// The address and the port of the socket.
    pub at: String,
    /// A random number that the node was given there, in hexadecimal digits.
    pub door: String,
    /// The inode of the network namespace, where the address is one that means the host itself: nobody
    /// else's loopback is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<u64>,
}
