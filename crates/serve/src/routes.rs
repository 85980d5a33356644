//! The table of routes.

use axum::http::Method;

use crate::access::Role;
use crate::document::Schema;
use crate::documents::{
    AskedDocument, AuditDocument, ClusterDocument, ClustersDocument, DutiesDocument, DutyDocument,
    ExplanationDocument, HealthDocument, HistoryDocument, HoldDocument, HoldRequest,
    IntentsDocument, LeaseDocument, LeasesDocument, MembersDocument, NameDocument, NothingRequest,
    PinRequest, PlanDocument, ProgressRequest, ReportRequest, RoleDocument, ServeRequest,
    ToRequest, TrustDocument, TrustRequest,
};
use crate::route::{Route, Run, Shape, run};
use crate::{
    audit, clusters, events, holding, looking, metrics, openapi, page, roles, serving, steering,
};

const PLAN: &[(&str, &str)] = &[
    ("drain", "as if this node were drained"),
    ("undrain", "as if it weren't"),
    ("cordon", "as if this node were cordoned"),
    ("uncordon", "as if it weren't"),
    ("move", "as if this duty were asked to move to the node in `to`"),
    ("pin", "as if this duty were wanted on the node in `to`"),
    ("pause", "as if this duty were paused"),
    ("resume", "as if it weren't"),
    ("to", "the node for `move` and `pin`"),
];

/// All of them.
pub(crate) fn table() -> Vec<Route> {
    let mut table = roles();
    table.extend(lookings());
    table.extend(holdings());
    table.extend(servings());
    table.extend(steerings());
    table
}

fn get(path: &'static str, summary: &'static str, answer: Run) -> Route {
    Route {
        method: Method::GET,
        path,
        role: Some(Role::ReadOnly),
        summary,
        body: None,
        query: &[],
        any_cluster: false,
        answers: Vec::new(),
        problems: &[],
        run: answer,
    }
}

impl Route {
    fn answers(mut self, status: u16, shape: Shape, said: &'static str) -> Self {
        self.answers.push((status, Some(shape), said));
        self
    }

    fn empty(mut self, status: u16, said: &'static str) -> Self {
        self.answers.push((status, None, said));
        self
    }

    fn of(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    fn by(mut self, role: Option<Role>) -> Self {
        self.role = role;
        self
    }

    fn body(mut self, shape: Shape) -> Self {
        self.body = Some(shape);
        self
    }

    fn query(mut self, query: &'static [(&'static str, &'static str)]) -> Self {
        self.query = query;
        self
    }

    fn in_any_cluster(mut self) -> Self {
        self.any_cluster = true;
        self
    }

    fn problems(mut self, problems: &'static [u16]) -> Self {
        self.problems = problems;
        self
    }
}

fn roles() -> Vec<Route> {
    let leader = |method| {
        get("/leader/{lease}", "Whether the lease is held here", run(roles::leader))
            .of(method)
            .by(None)
            .query(&[("standby", "200: say 200 on a standby too")])
            .answers(200, RoleDocument::schema, "held here, or standby=200")
            .answers(503, RoleDocument::schema, "not held here")
    };
    let probe = |path, summary, answer| {
        get(path, summary, answer).by(None).answers(200, HealthDocument::schema, "well").answers(
            503,
            HealthDocument::schema,
            "not well",
        )
    };
    vec![
        leader(Method::GET),
        leader(Method::OPTIONS),
        probe("/livez", "Whether this process works, whatever its store does", run(roles::livez)),
        probe("/readyz", "Whether requests are taken, regardless of who leads", run(roles::readyz)),
        get("/", "The name of the leader; the page for browsers", run(page::root))
            .by(None)
            .query(&[("lease", "of this lease")])
            .answers(200, NameDocument::schema, "empty if nobody leads")
            .problems(&[503]),
        get("/page/{file}", "A file of the page", run(page::show))
            .by(None)
            .empty(200, "as it is")
            .problems(&[404]),
        get("/metrics", "Metrics for Prometheus", run(metrics::show))
            .empty(200, "text/plain, in Prometheus' format, or OpenMetrics if it is accepted"),
        get("/openapi.json", "This document", run(openapi::show)).by(None).answers(
            200,
            serde_json::Value::schema,
            "OpenAPI 3.1",
        ),
    ]
}

fn lookings() -> Vec<Route> {
    let clusters = get("/v1/clusters", "All clusters, and how each is doing", run(clusters::show))
        .answers(200, ClustersDocument::schema, "first the joined one");
    let mut table = vec![clusters];
    table.extend(lookings_in_a_cluster().into_iter().map(Route::in_any_cluster));
    table
}

fn lookings_in_a_cluster() -> Vec<Route> {
    vec![
        get("/v1/cluster", "This server and a cluster", run(looking::cluster)).answers(
            200,
            ClusterDocument::schema,
            "from memory",
        ),
        get("/v1/leases", "All leases", run(looking::leases))
            .answers(200, LeasesDocument::schema, "in the order of their names")
            .problems(&[503]),
        get("/v1/leases/{lease}", "A lease, at once or when it has changed", run(looking::lease))
            .query(&[
                ("after", "a cursor: answer once it is another"),
                ("wait", "how long at most, such as 30s"),
            ])
            .answers(200, LeaseDocument::schema, "as it is now")
            .problems(&[429, 503]),
        get("/v1/members", "All members", run(looking::members))
            .answers(200, MembersDocument::schema, "in the order in which they joined")
            .problems(&[503]),
        get("/v1/duties", "All duties", run(looking::duties))
            .answers(200, DutiesDocument::schema, "with what operators ask for")
            .problems(&[503]),
        get("/v1/duties/{duty}", "A duty", run(looking::duty))
            .answers(200, DutyDocument::schema, "as it is now")
            .problems(&[404, 503]),
        get("/v1/duties/{duty}/explain", "Why it runs where it runs", run(looking::explain))
            .answers(200, ExplanationDocument::schema, "line by line")
            .problems(&[404, 503]),
        get("/v1/plan", "What the leader would do, now or if", run(looking::plan))
            .query(PLAN)
            .answers(200, PlanDocument::schema, "nothing is changed")
            .problems(&[503]),
        get("/v1/history", "Who led when, and where duties moved", run(looking::history))
            .query(&[("lease", "of this lease alone"), ("duty", "of this duty or family alone")])
            .answers(200, HistoryDocument::schema, "oldest first")
            .problems(&[503]),
        get("/v1/intents", "What operators asked for", run(looking::intents))
            .answers(200, IntentsDocument::schema, "what is in force")
            .problems(&[503]),
        get("/v1/audit", "Who asked for what", run(audit::audit))
            .answers(200, AuditDocument::schema, "newest first")
            .problems(&[503]),
        get("/v1/events", "What changes, as server-sent events", run(events::events))
            .query(&[("after", "as Last-Event-ID")])
            .empty(200, "text/event-stream")
            .problems(&[429, 503]),
    ]
}

fn holdings() -> Vec<Route> {
    let client = Some(Role::Client);
    let trust = |method, path| {
        get(path, "The client is alive; how long may it trust?", run(holding::trust))
            .of(method)
            .by(client)
            .body(TrustRequest::schema)
            .answers(200, TrustDocument::schema, "to be counted from before it was asked")
            .problems(&[404, 410])
    };
    vec![
        get(
            "/v1/leases/{lease}/hold",
            "Hold a lease for as long as this streams",
            run(holding::hold),
        )
        .of(Method::POST)
        .by(client)
        .body(HoldRequest::schema)
        .empty(200, "JSON lines, or server-sent events if asked for")
        .problems(&[409, 429, 503]),
        get("/v1/leases/{lease}/acquire", "Hold a lease without a stream", run(holding::acquire))
            .of(Method::POST)
            .by(client)
            .body(HoldRequest::schema)
            .answers(201, HoldDocument::schema, "held")
            .problems(&[409, 410, 429, 503, 504]),
        trust(Method::PUT, "/v1/holds/{id}"),
        trust(Method::POST, "/v1/holds/{id}/trust"),
        get("/v1/holds/{id}", "A hold", run(holding::show))
            .by(client)
            .answers(200, HoldDocument::schema, "as it is now")
            .problems(&[404, 410]),
        get("/v1/holds/{id}", "All its work has ended: free the lease", run(holding::end))
            .of(Method::DELETE)
            .by(client)
            .empty(204, "freed")
            .empty(202, "to be freed: the store hasn't confirmed it yet")
            .problems(&[404]),
    ]
}

fn servings() -> Vec<Route> {
    let client = Some(Role::Client);
    vec![
        get(
            "/v1/families/{family}/serve",
            "Run duties of a family for as long as this streams",
            run(serving::serve),
        )
        .of(Method::POST)
        .by(client)
        .body(ServeRequest::schema)
        .empty(200, "JSON lines, or server-sent events if asked for")
        .problems(&[429, 503]),
        get(
            "/v1/holds/{id}/progress",
            "Report that the work is making progress",
            run(serving::progress),
        )
        .of(Method::POST)
        .by(client)
        .body(ProgressRequest::schema)
        .empty(204, "taken note of")
        .problems(&[404, 410]),
        get("/v1/holds/{id}/report", "The state of a duty", run(serving::report))
            .of(Method::POST)
            .by(client)
            .body(ReportRequest::schema)
            .empty(204, "taken note of")
            .problems(&[404, 410]),
    ]
}

fn steerings() -> Vec<Route> {
    let asks = |method, path, summary, answer| {
        get(path, summary, answer)
            .of(method)
            .by(Some(Role::Operator))
            .in_any_cluster()
            .answers(202, AskedDocument::schema, "asked for")
            .problems(&[404, 409, 412, 503])
    };
    let says = |route: Route| route.body(NothingRequest::schema);
    let (put, post, delete) = (Method::PUT, Method::POST, Method::DELETE);
    vec![
        says(asks(
            post.clone(),
            "/v1/leases/{lease}/resign",
            "Ask its holder to give it up",
            run(steering::resign),
        )),
        asks(
            post.clone(),
            "/v1/leases/{lease}/transfer",
            "Ask its holder to give it to another",
            run(steering::transfer),
        )
        .body(ToRequest::schema),
        says(asks(post.clone(), "/v1/members/{id}/evict", "Evict a member", run(steering::evict))),
        asks(put.clone(), "/v1/duties/{duty}/pin", "Pin a duty to a node", run(steering::pin))
            .body(PinRequest::schema),
        asks(delete.clone(), "/v1/duties/{duty}/pin", "Undo that", run(steering::unpin)),
        says(asks(
            put.clone(),
            "/v1/duties/{duty}/pause",
            "Stop a duty, and keep it stopped",
            run(steering::pause),
        )),
        asks(delete.clone(), "/v1/duties/{duty}/pause", "Let it run again", run(steering::resume)),
        asks(
            post,
            "/v1/duties/{duty}/move",
            "Move a duty to a node, once",
            run(steering::move_duty),
        )
        .body(ToRequest::schema),
        says(asks(
            put.clone(),
            "/v1/nodes/{node}/cordon",
            "Give a node no more duties",
            run(steering::cordon),
        )),
        asks(delete.clone(), "/v1/nodes/{node}/cordon", "Undo that", run(steering::uncordon)),
        says(asks(
            put.clone(),
            "/v1/nodes/{node}/drain",
            "Move all duties away from a node",
            run(steering::drain),
        )),
        asks(delete.clone(), "/v1/nodes/{node}/drain", "Undo that", run(steering::undrain)),
        says(asks(
            put,
            "/v1/freeze",
            "Move nothing just to balance the load",
            run(steering::freeze),
        )),
        asks(delete.clone(), "/v1/freeze", "Undo that", run(steering::thaw)),
        asks(delete, "/v1/intents/{id}", "Withdraw a request", run(steering::withdraw)),
    ]
}
