//! A private etcd, or the one that the environment names.

use incumbent_proving::server::etcd as private;

use super::http;

/// A prefix that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    format!("{}{}", base(&private::shared()), super::fresh())
}

/// The port of the server that the tests share.
pub fn shared_port() -> u16 {
    let url = private::shared();
    let hosts = base(&url).rsplit('/').next().unwrap_or_default();
    let port = hosts.split(',').next().and_then(|host| host.rsplit_once(':'));
    port.and_then(|(_, port)| port.parse().ok()).unwrap_or(2379)
}

/// A URL without its prefix.
fn base(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find(['/', '?']).map_or(url, |end| &url[..start + end])
}

incumbent_proving::own_server!();

impl Server {
    /// Starts one with these arguments besides the usual.
    pub fn start(arguments: &[&str]) -> Self {
        Self(private::start(arguments))
    }

    /// The same for clients that come with this scheme.
    pub fn start_as(scheme: &str, arguments: &[&str]) -> Self {
        Self(private::start_as(scheme, arguments))
    }

    /// Starts three that form a cluster.
    pub fn three() -> [Self; 3] {
        private::three().map(Self)
    }

    /// Whether it leads its cluster.
    pub fn leads(&self) -> bool {
        http::metric(self.port(), "etcd_server_is_leader") == 1
    }

    /// Its URL with a prefix that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}{}", private::url(self), super::fresh())
    }
}
