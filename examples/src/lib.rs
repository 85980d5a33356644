//! Small programs to start from; each says how to run two of it side by side.
//!
//! | program | what it shows |
//! | --- | --- |
//! | `scheduler` | work that runs while this node leads: the README's first example |
//! | `guard` | a campaign, and a leadership that is held and handed over |
//! | `blocking` | the same without async |
//! | `duties` | work that is spread over all nodes |
//! | `periodic` | a job that runs once per tick of a schedule |
//! | `observe` | who leads and who is there, as it changes |
