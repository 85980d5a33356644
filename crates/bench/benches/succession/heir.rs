//! One of those that want to lead. It leads, says so and waits for its end, whatever that is.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use incumbent::{Node, Term, clock};
use tokio::signal::unix::{SignalKind, signal};

/// Where an heir belongs, and whom it tells.
pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    pub(crate) ttl: Duration,
    pub(crate) socket: &'a Path,
    /// Whether its death can be proven.
    pub(crate) witness: bool,
}

pub(crate) fn serve(post: &Post<'_>) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(stand(post))
}

async fn stand(post: &Post<'_>) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut resign = signal(SignalKind::user_defined1())?;
    let store = incumbent::open(post.url).await?;
    let builder = Node::builder().cluster("succession").ttl(post.ttl);
    let builder = builder.name(format!("heir-{}", std::process::id()));
    let builder = if post.witness { builder } else { builder.without_witness() };
    let node = builder.join(store).await?;
    let reports = UnixDatagram::unbound()?;
    reports.connect(post.socket)?;
    tell(&reports, "joined");
    let (leading, mut leads) = tokio::sync::watch::channel(None::<Term>);
    let _candidacy = node.lead("throne", move |term| {
        let (leading, reports) = (leading.clone(), reports.try_clone());
        async move {
            tell(&reports?, "led");
            leading.send_replace(Some(term.clone()));
            term.token().cancelled().await;
            Ok(())
        }
    })?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = resign.recv() => {
                if let Some(term) = leads.borrow_and_update().as_ref() {
                    term.resign();
                }
            }
        }
    }
    node.leave().await?;
    Ok(())
}

fn tell(reports: &UnixDatagram, what: &str) {
    let line = format!("{what} {} {}", std::process::id(), clock::now().as_nanos());
    // Nobody listens any more: there is nothing to be measured then.
    let _ = reports.send(line.as_bytes());
}
