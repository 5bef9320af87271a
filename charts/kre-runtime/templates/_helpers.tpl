{{/*
Of a dict {root, component} unless said otherwise. Objects are called kre-COMPONENT: a namespace has one runtime, and people and versions
know its servers by these names.
*/}}

{{/* What selects the pods of a component: never changes during a release's life. */}}
{{- define "kre.selector" -}}
app.kubernetes.io/name: kre-{{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* Labels of the pods and claims. No versions here, so that a new chart alone doesn't restart them. */}}
{{- define "kre.podLabels" -}}
{{ include "kre.selector" . }}
app.kubernetes.io/part-of: kre-runtime
kre.konstellation.io/component: {{ .component }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "kre.labels" -}}
{{ include "kre.podLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* Name, namespace and labels of the object of that component that is called after it. */}}
{{- define "kre.metadata" -}}
name: kre-{{ .component | lower }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "kre.labels" . | nindent 2 }}
{{- end -}}

{{/* Of a dict {root, image}: the image of that name in values. */}}
{{- define "kre.image" -}}
{{- $image := index .root.Values.images .image -}}
{{- $name := $image.repository -}}
{{- with .root.Values.imagePrefix }}{{ $name = printf "%s/%s" . $name }}{{ end -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ $image.tag }}
{{- end -}}
{{- end -}}

{{/* Image and what every container may do. Of a dict {root, image}. */}}
{{- define "kre.container" -}}
image: {{ include "kre.image" . }}
imagePullPolicy: {{ (index .root.Values.images .image).pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
      - ALL
{{- end -}}

{{/* What every pod is: nobody in particular, without a token. Of the chart's root. */}}
{{- define "kre.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A probe that starts, lives and is ready by one and the same port. Of a dict {port}. */}}
{{- define "kre.tcpProbes" -}}
startupProbe:
  tcpSocket:
    port: {{ .port }}
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  tcpSocket:
    port: {{ .port }}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  tcpSocket:
    port: {{ .port }}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end -}}

{{/* Probes by HTTP. Of a dict {port, start, live, ready} with the paths, and how often a start may be asked in vain if not 90 times. */}}
{{- define "kre.httpProbes" -}}
startupProbe:
  httpGet:
    path: {{ .start }}
    port: {{ .port }}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: {{ .starts | default 90 }}
livenessProbe:
  httpGet:
    path: {{ .live }}
    port: {{ .port }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: {{ .ready }}
    port: {{ .port }}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end -}}

{{/* The volume of a pod where it has no claim. Of a dict {root, values}. */}}
{{- define "kre.noClaim" -}}
{{- if not .values.volume.enabled }}
- name: data
  emptyDir:
    sizeLimit: {{ .values.volume.size }}
{{- end }}
{{- end -}}

{{/* The claims of a StatefulSet. Nothing here but size and class may differ from one release to the next. Of a dict {root, component, values}. */}}
{{- define "kre.claims" -}}
{{- if .values.volume.enabled }}
persistentVolumeClaimRetentionPolicy:
  whenDeleted: Retain
  whenScaled: Retain
volumeClaimTemplates:
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata:
      name: data
      labels:
        {{- include "kre.podLabels" . | nindent 8 }}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .values.volume.storageClass }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ .values.volume.size }}
{{- end }}
{{- end -}}
