//! A Widget asks for one ConfigMap that holds its text.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// The label by which ConfigMaps of Widgets are watched; its value is the Widget's name.
pub const OWNER: &str = "bench.moorage.dev/widget";

/// Of a settled Widget: type, status, reason, message.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("Available", "True", "Present", ""),
    ("Ready", "True", "Ready", "all steps are done"),
    ("Reconciling", "False", "Settled", ""),
    ("Stalled", "False", "Settled", ""),
];

/// What is to be in the ConfigMap.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "bench.moorage.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    schema = "disabled"
)]
pub struct WidgetSpec {
    #[serde(default)]
    pub text: String,
}

/// What is in it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WidgetStatus {
    pub observed_generation: i64,
    pub text: String,
    pub conditions: Vec<Condition>,
}

impl Widget {
    /// The status of a Widget that is as wanted, unless it says just that already.
    pub fn news(&self) -> Option<WidgetStatus> {
        let generation = self.metadata.generation.unwrap_or_default();
        let said = self.status.as_ref();
        let now = Time(Timestamp::now());
        let conditions = CONDITIONS.map(|(type_, status, reason, message)| {
            let former = said
                .and_then(|it| it.conditions.iter().find(|one| one.type_ == type_))
                .filter(|one| one.status == status);
            Condition {
                type_: type_.into(),
                status: status.into(),
                reason: reason.into(),
                message: message.into(),
                observed_generation: Some(generation),
                last_transition_time: former.map_or(&now, |one| &one.last_transition_time).clone(),
            }
        });
        let status = WidgetStatus {
            observed_generation: generation,
            text: self.spec.text.clone(),
            conditions: conditions.into(),
        };
        (said != Some(&status)).then_some(status)
    }
}
