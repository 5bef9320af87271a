//! Makes the ConfigMap of a Widget right, then its status. Each is written only where the reflectors say that it is wrong.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
    runtime::{
        controller::Action,
        reflector::{ObjectRef, Store, store::WriterDropped},
    },
};
use serde_json::json;

use crate::widget::{OWNER, Widget};

const MANAGER: &str = "kube-rs";
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// What each reconcile works with.
pub struct Keeper {
    pub widgets: Api<Widget>,
    pub children: Api<ConfigMap>,
    pub known_children: Store<ConfigMap>,
    pub resync: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refused or not answered: {0}")]
    Request(#[from] kube::Error),
    #[error("ConfigMaps are no longer watched: {0}")]
    Unwatched(#[from] WriterDropped),
}

/// One write at most: the event of a ConfigMap that was written calls again, and by then the reflector has it.
///
/// That is how kube-rs reads what it wrote. With both writes in one go, that event would find a Widget whose status has
/// not come back yet, and write it a second time.
pub async fn reconcile(widget: Arc<Widget>, keeper: Arc<Keeper>) -> Result<Action, Error> {
    if widget.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    keeper.known_children.wait_until_ready().await?;
    if !keeper.has_child(&widget) {
        keeper.write_child(&widget).await?;
        return Ok(Action::await_change());
    }
    if let Some(status) = widget.news() {
        let patch = Patch::Merge(json!({ "status": status }));
        keeper
            .widgets
            .patch_status(&widget.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::requeue(keeper.resync))
}

pub fn after_error(_: Arc<Widget>, _: &Error, _: Arc<Keeper>) -> Action {
    Action::requeue(AFTER_ERROR)
}

impl Keeper {
    /// Whether the ConfigMap is there, holds the text and is this Widget's.
    fn has_child(&self, widget: &Widget) -> bool {
        let namespace = widget.metadata.namespace.as_deref().unwrap_or_default();
        let key = ObjectRef::new(&child_name(widget)).within(namespace);
        self.known_children.get(&key).is_some_and(|child| {
            let text = child.data.as_ref().and_then(|data| data.get("text"));
            let owned = child
                .owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == widget.metadata.uid.as_ref());
            text == Some(&widget.spec.text) && owned
        })
    }

    async fn write_child(&self, widget: &Widget) -> kube::Result<()> {
        let name = child_name(widget);
        let child = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: widget.namespace(),
                labels: Some(BTreeMap::from([(OWNER.into(), widget.name_any())])),
                owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("text".into(), widget.spec.text.clone())])),
            ..ConfigMap::default()
        };
        let params = PatchParams::apply(MANAGER).force();
        self.children.patch(&name, &params, &Patch::Apply(child)).await?;
        Ok(())
    }
}

fn child_name(widget: &Widget) -> String {
    format!("{}-widget", widget.name_any())
}
