//! The benchmark's Widget operator on kube-rs: a Widget owns one ConfigMap, and its status says what was done.

mod keeper;
mod watching;
mod widget;

use std::{future::ready, io::stderr, path::PathBuf, sync::Arc, time::Duration};

use clap::Parser;
use futures::StreamExt;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        Controller, WatchStreamExt,
        controller::{self, Error},
        predicates, reflector, watcher,
    },
};
use tracing::Level;

use keeper::Keeper;
use widget::OWNER;

/// What the harness tells each operator.
#[derive(Parser)]
struct Options {
    /// How to reach the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Where Widgets are looked after.
    #[arg(long)]
    namespace: String,
    /// Seconds between two looks at a settled object.
    #[arg(long, default_value_t = 36000.0)]
    resync: f64,
    /// Reconciles at a time.
    #[arg(long, default_value_t = 16)]
    workers: u16,
    /// Ten watches.
    #[arg(long)]
    wide: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_writer(stderr)
        .init();
    let given = Options::parse();
    let kubeconfig = Kubeconfig::read_from(&given.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    run(Client::try_from(config)?, given).await;
    Ok(())
}

/// Look after Widgets until SIGTERM.
///
/// A Widget's own status is no news, so only another generation of it counts. The ConfigMaps that the reconciler reads
/// and those that call it are of one reflector: when it is called for one, it sees that one.
async fn run(client: Client, given: Options) {
    let widgets = Api::namespaced(client.clone(), &given.namespace);
    let children = Api::namespaced(client.clone(), &given.namespace);
    let (known_widgets, writer) = reflector::store();
    let changed = watching::reflected(widgets.clone(), watcher::Config::default(), writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    let (known_children, writer) = reflector::store();
    let touched =
        watching::reflected(children.clone(), watcher::Config::default().labels(OWNER), writer).touched_objects();
    if given.wide {
        watching::others(&client, &given.namespace);
    }
    let keeper = Keeper {
        widgets,
        children,
        known_children,
        resync: Duration::from_secs_f64(given.resync),
    };
    Controller::for_stream(changed, known_widgets)
        .owns_stream(touched)
        .with_config(controller::Config::default().concurrency(given.workers))
        .shutdown_on_signal()
        .run(keeper::reconcile, keeper::after_error, Arc::new(keeper))
        .for_each(|done| {
            match done {
                // the ConfigMap of a Widget that has gone says so when it goes too
                Ok(_) | Err(Error::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(%error, "not reconciled"),
            }
            ready(())
        })
        .await;
}
