//! Reflectors: streaming lists, then watches, kept in stores without what nobody reads.

use std::{fmt::Debug, future::ready};

use futures::{Stream, StreamExt};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{DaemonSet, Deployment, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{Secret, Service},
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Client, Resource,
    runtime::{
        WatchStreamExt,
        reflector::{self, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;

/// What happens to these objects, once the store has it.
pub fn reflected<K>(
    api: Api<K>,
    config: watcher::Config,
    writer: Writer<K>,
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watcher(api, config.streaming_lists())
        .default_backoff()
        .modify(|object: &mut K| object.meta_mut().managed_fields = None)
        .reflect(writer)
}

/// Eight kinds that are watched beside the Widget's two, to see what idle watches cost.
pub fn others(client: &Client, namespace: &str) {
    follow::<Deployment>(client, namespace);
    follow::<StatefulSet>(client, namespace);
    follow::<DaemonSet>(client, namespace);
    follow::<Job>(client, namespace);
    follow::<CronJob>(client, namespace);
    follow::<Service>(client, namespace);
    follow::<Secret>(client, namespace);
    follow::<PodDisruptionBudget>(client, namespace);
}

fn follow<K>(client: &Client, namespace: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let (_, writer) = reflector::store();
    let api = Api::<K>::namespaced(client.clone(), namespace);
    let events = reflected(api, watcher::Config::default(), writer);
    tokio::spawn(events.for_each(|_| ready(())));
}
