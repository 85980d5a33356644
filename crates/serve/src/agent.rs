//! HAProxy's agent check: a port that says `up` or `maint`.

use std::future::Future;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::service::Service;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers each connection with `up` if the lease is held here at that moment, and with `maint`
/// otherwise, until `stop` is ready. From then on it is `maint`.
pub async fn agent_check(
    listener: TcpListener,
    service: Service,
    lease: String,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((mut stream, _)) = accepted else {
            // No more files, for instance: that passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let up = service.holds_lease(&lease) && !service.holds().is_stopping();
        let said: &[u8] = if up { b"up\n" } else { b"maint\n" };
        service.spawn(async move {
            let answer = async {
                stream.write_all(said).await?;
                stream.shutdown().await
            };
            let _ = tokio::time::timeout(PATIENCE, answer).await;
        });
    }
}
