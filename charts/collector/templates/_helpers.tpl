{{/* What selects the pods: never changes during a release's life. */}}
{{- define "collector.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Any text as the value of a label, which may hold less than a tenant's key. The exact text is in the environment. */}}
{{- define "collector.labelValue" -}}
{{- regexReplaceAll "[^A-Za-z0-9_.-]+" (. | default "") "-" | trimAll "-_." | trunc 63 | trimAll "-_." -}}
{{- end -}}

{{/* Labels of the pods. No versions here, so that a new chart alone doesn't restart them. */}}
{{- define "collector.podLabels" -}}
{{ include "collector.selector" . }}
app.kubernetes.io/component: telemetry-collector
{{- with include "collector.labelValue" .Values.tenant.id }}
example.com/tenant: {{ . | quote }}
{{- end }}
{{- with include "collector.labelValue" .Values.cluster }}
example.com/cluster: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "collector.labels" -}}
{{ include "collector.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "collector.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
The configuration as the collector reads it: the user's, and the two endpoints that the probes and the Service rely on.
*/}}
{{- define "collector.configuration" -}}
{{- $config := deepCopy .Values.config -}}
{{- $health := dict "health_check" (dict "endpoint" ":13133") -}}
{{- $_ := set $config "extensions" (mustMerge (deepCopy ($config.extensions | default dict)) $health) -}}
{{- $service := $config.service | default dict -}}
{{- $extensions := $service.extensions | default list -}}
{{- if not (has "health_check" $extensions) -}}
{{- $_ := set $service "extensions" (append $extensions "health_check") -}}
{{- end -}}
{{- $pull := dict "pull" (dict "exporter" (dict "prometheus" (dict "host" "" "port" 8888))) -}}
{{- $telemetry := dict "metrics" (dict "readers" (list $pull)) -}}
{{- $_ := set $service "telemetry" (mustMerge (deepCopy ($service.telemetry | default dict)) $telemetry) -}}
{{- $_ := set $config "service" $service -}}
{{- toYaml $config -}}
{{- end -}}
