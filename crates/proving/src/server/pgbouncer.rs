//! PgBouncer in transaction mode, in front of a PostgreSQL.

use rustix::process::Signal;

use super::postgres::own;
use super::{Recipe, Server, Site, program};

/// Starts one before the server at this port, with more lines for its configuration.
///
/// # Panics
///
/// If it doesn't start.
#[must_use]
pub fn before(postgres: u16, more: &str) -> Server {
    let site = Site::new("pgbouncer");
    let users = site.path().join("users.txt");
    std::fs::write(&users, "\"postgres\" \"\"\n").expect("a file");
    let (port, users) = (site.port(), users.display());
    let configuration = format!(
        "[databases]\n* = host=127.0.0.1 port={postgres}\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = trust\nauth_file = {users}\npool_mode = transaction\n\
         default_pool_size = 4\nmax_client_conn = 200\n{more}\n",
    );
    std::fs::write(site.path().join("pgbouncer.ini"), configuration).expect("a file");
    own(site.path());
    let serve = |site: &Site| {
        let program = program::required("pgbouncer", "pgbouncer");
        let mut command = site.command_as("postgres", &program);
        command.arg("-q").arg(site.path().join("pgbouncer.ini"));
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::new(site, Recipe { serve: Box::new(serve), ready: Site::listens, kill, end })
}
