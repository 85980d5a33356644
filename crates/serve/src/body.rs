//! The body of a request: as much as is allowed, in the time that is allowed.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::Body as _;

use crate::problem::{Problem, SLOW, TOO_LARGE};

/// How long a body may take to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// All of it, if it has no more than so many bytes, and comes within this time.
pub(crate) async fn read(body: Body, most: usize, within: Duration) -> Result<Bytes, Problem> {
    let late = |_| {
        let said =
            format!("the body hasn't come within {within:?}. Nothing was done: send it again");
        Problem::new(&SLOW, said)
    };
    tokio::time::timeout(within, collect(body, most)).await.map_err(late)?
}

async fn collect(mut body: Body, most: usize) -> Result<Bytes, Problem> {
    let large = || Problem::new(&TOO_LARGE, format!("the body has more than {most} bytes"));
    if body.size_hint().lower() > most as u64 {
        return Err(large());
    }
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| {
            let said = "the body broke off, or isn't as its headers say";
            Problem::bad(format!("{said} ({error}). Nothing was done: send it again as a whole"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > most {
            return Err(large());
        }
        all.extend_from_slice(&data);
    }
    Ok(all.into())
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;

    /// A body of which the second part never comes, or breaks off.
    struct Half(bool, bool);

    impl http_body::Body for Half {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            if std::mem::take(&mut self.0) {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"{")))));
            }
            if self.1 {
                Poll::Ready(Some(Err(std::io::Error::other("cut"))))
            } else {
                Poll::Pending
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_never_comes_is_not_waited_for() {
        let soon = Duration::from_millis(20);
        let code = |read: Result<Bytes, Problem>| read.unwrap_err().code();
        assert_eq!(code(read(Body::new(Half(true, false)), 10, soon).await), "slow");
        assert_eq!(code(read(Body::new(Half(true, true)), 10, PATIENCE).await), "bad-request");
        assert_eq!(code(read(Body::from("12345"), 4, PATIENCE).await), "too-large");
        assert_eq!(read(Body::from("1234"), 4, PATIENCE).await.unwrap(), "1234");
    }
}
