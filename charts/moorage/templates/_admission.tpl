{{/*
A policy for what the operator writes, up to its validations, with its binding. Of a dict:
  root, name          the chart's values, and the policy's name after the release's
  group, resources, operations
  binding             optional: the policy is about the RoleBinding of this name alone
*/}}
{{- define "moorage.policy" -}}
{{- $name := printf "%s-%s" (include "moorage.fullname" .root) .name -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "moorage.labels" .root | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "moorage.labels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [{{ .group | quote }}]
        apiVersions: ["*"]
        resources: {{ .resources | toJson }}
        operations: {{ .operations | toJson }}
  matchConditions:
    - name: the-operator
      expression: request.userInfo.username == '{{ include "moorage.user" .root }}'
    {{- with .binding }}
    - name: the-binding
      expression: >-
        (request.operation == 'DELETE' ? oldObject : object).metadata.name == '{{ . }}'
    {{- end }}
{{- end -}}

{{/*
A policy for the RoleBinding moorage-SYSTEM, by which the operator gets one ClusterRole in a namespace. It holds what is so for
every system; a system's own rules are further validations behind it. Of a dict: root, system, role.
*/}}
{{- define "moorage.bindingPolicy" -}}
{{ include "moorage.policy" (dict "root" .root "name" (printf "%s-bindings" .system) "binding" (printf "moorage-%s" .system)
  "group" "rbac.authorization.k8s.io" "resources" (list "rolebindings") "operations" (list "CREATE" "UPDATE" "DELETE")) }}
  validations:
    - expression: >-
        request.operation == 'DELETE' || (object.roleRef.apiGroup == 'rbac.authorization.k8s.io'
        && object.roleRef.kind == 'ClusterRole' && object.roleRef.name == '{{ .role }}')
      message: moorage may bind no role but the ClusterRole {{ .role }} by the RoleBinding moorage-{{ .system }}.
      reason: Forbidden
    - expression: >-
        request.operation == 'DELETE' || (has(object.subjects) && object.subjects.size() == 1
        && object.subjects[0].kind == 'ServiceAccount'
        && object.subjects[0].name == '{{ include "moorage.serviceAccount" .root }}'
        && object.subjects[0].namespace == '{{ .root.Release.Namespace }}')
      message: moorage may bind nobody but itself.
      reason: Forbidden
    - expression: >-
        request.operation == 'DELETE'
        || !(request.namespace.startsWith('kube-') || request.namespace == '{{ .root.Release.Namespace }}')
      messageExpression: >-
        'moorage may not bind itself in namespace ' + request.namespace + ': it belongs to the cluster or to moorage itself.'
        + ' Make the resource that asks for it in another namespace.'
      reason: Forbidden
{{- end -}}
