{{- define "xsld-cache.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* The Secret with both credentials. */}}
{{- define "xsld-cache.secret" -}}
{{ .Values.credentials.existingSecret | default (printf "%s-login" .Release.Name) }}
{{- end -}}
