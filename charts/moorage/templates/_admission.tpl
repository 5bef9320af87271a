{{/*
A policy up to its validations, with its binding. Of a dict:
  root, name          the chart's values, and the policy's name after the release's
  group, resources, operations
  who                 optional: a CEL expression of whose requests it is about; the operator's, where it is left out
  binding             optional: the policy is about the RoleBinding of this name alone
  namespace           optional: the policy is about objects in this namespace alone
  except              optional: groups that it is not about
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
    {{- with .namespace }}
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: {{ . }}
    {{- end }}
    resourceRules:
      - apiGroups: [{{ .group | quote }}]
        apiVersions: ["*"]
        resources: {{ .resources | toJson }}
        operations: {{ .operations | toJson }}
    {{- with .except }}
    excludeResourceRules:
      - apiGroups: {{ . | toJson }}
        apiVersions: ["*"]
        resources: ["*/*"]
        operations: ["*"]
    {{- end }}
  matchConditions:
    - name: whose
      expression: {{ .who | default (include "moorage.isOperator" .root) }}
    {{- with .binding }}
    - name: the-binding
      expression: >-
        (request.operation == 'DELETE' ? oldObject : object).metadata.name == '{{ . }}'
    {{- end }}
{{- end -}}

{{/* CEL: a request of the operator itself, one of an account by which it reaches a namespace, and one of such for Weka. */}}
{{- define "moorage.isOperator" -}}
request.userInfo.username == '{{ include "moorage.user" . }}'
{{- end -}}
{{- define "moorage.isAccount" -}}
request.userInfo.username.startsWith('{{ include "moorage.accountUser" . }}')
{{- end -}}
{{- define "moorage.weka.isAccount" -}}
request.userInfo.username.startsWith('{{ include "moorage.accountUser" . }}weka.')
{{- end -}}

{{/*
A policy for the RoleBinding moorage-SYSTEM, by which the account of a namespace gets one ClusterRole there. It holds what is so for
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
        && object.subjects[0].name == '{{ .system }}.' + request.namespace
        && object.subjects[0].namespace == '{{ include "moorage.accounts" .root }}')
      messageExpression: >-
        'moorage may bind nobody in namespace ' + request.namespace + ' but the account of that namespace, {{ .system }}.' + request.namespace + '.'
      reason: Forbidden
    - expression: >-
        request.operation == 'DELETE'
        || !(request.namespace.startsWith('kube-') || request.namespace in ['{{ .root.Release.Namespace }}', '{{ include "moorage.accounts" .root }}'])
      messageExpression: >-
        'moorage may have no rights in namespace ' + request.namespace + ': it belongs to the cluster or to moorage itself.'
        + ' Make the resource that asks for it in another namespace.'
      reason: Forbidden
{{- end -}}
