//! Panics that were caught.

use std::any::Any;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use crate::driver::foreign::drop_elsewhere;
use crate::error::BoxError;

/// What a panic said. What it threw may be the application's, and is dropped accordingly.
pub(crate) fn text(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    drop_elsewhere(panic);
    text.unwrap_or_else(|| "without a message".to_owned())
}

/// What an error of the application's says, and what caused it. Showing it is the application's code,
/// and so is dropping it: either may panic.
pub(crate) fn shown(error: BoxError) -> String {
    let said = contain(|| chain(&*error));
    drop_elsewhere(error);
    said.unwrap_or_else(|said| format!("it panicked: {said}"))
}

/// What an error says and what its causes say, as far as that is something else: many say no more than
/// "db error" by themselves, and others repeat their cause.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    /// More would be a circle.
    const LONGEST: usize = 16;
    let causes = std::iter::successors(error.source(), |&error| error.source());
    let mut said = error.to_string();
    for cause in causes.take(LONGEST).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

/// Calls something that may panic; gives what the panic said.
pub(crate) fn contain<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(text)
}

/// Runs a future that may panic; gives what the panic said. It isn't polled again after one.
pub(crate) async fn contained<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, String> {
    poll_fn(|context| match contain(|| future.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(said) => Poll::Ready(Err(said)),
    })
    .await
}
