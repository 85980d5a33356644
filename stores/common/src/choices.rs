/// Methods that set one field each, for options that are chosen one after another: any text, a time up
/// to a limit, or a value of some type.
///
/// ```ignore
/// impl MyOptions {
///     choices! {
///         /// What all keys start with: `incumbent` by default.
///         prefix: Text;
///         /// How long an answer may take: 5 s by default, 60 s at most.
///         timeout: up to LONGEST;
///         /// Whether changes are pushed, as they are by default.
///         hints: bool;
///     }
/// }
/// ```
#[macro_export]
macro_rules! choices {
    () => {};
    ($(#[$doc:meta])* $name:ident: Text; $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, text: impl Into<String>) -> Self {
            self.$name = text.into();
            self
        }
        $crate::choices! { $($rest)* }
    };
    ($(#[$doc:meta])* $name:ident: up to $longest:expr; $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, span: std::time::Duration) -> Self {
            self.$name = span.clamp(std::time::Duration::from_millis(1), $longest);
            self
        }
        $crate::choices! { $($rest)* }
    };
    ($(#[$doc:meta])* $name:ident: $kind:ty; $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, value: $kind) -> Self {
            self.$name = value;
            self
        }
        $crate::choices! { $($rest)* }
    };
}
