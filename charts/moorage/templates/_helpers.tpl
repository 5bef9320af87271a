{{- define "moorage.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "moorage.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "moorage.labels" -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "moorage.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "moorage.fullname" .) }}
{{- else -}}
{{ required "serviceAccount.name: name the account to use, or set serviceAccount.create" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "moorage.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Who the operator is to the API server. */}}
{{- define "moorage.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "moorage.serviceAccount" . }}
{{- end -}}

{{/* The namespace of the accounts by which moorage reaches other namespaces, one account for each. Nothing else is in it. */}}
{{- define "moorage.accounts" -}}
{{ include "moorage.fullname" . }}-accounts
{{- end -}}

{{/* How each account's name begins, as the API server has it; the system, a dot, and the namespace that it reaches follow. */}}
{{- define "moorage.accountUser" -}}
system:serviceaccount:{{ include "moorage.accounts" . }}:
{{- end -}}

{{/* The role that a RoleBinding gives the account of a namespace that holds WekaClusters there. */}}
{{- define "moorage.weka.namespaceRole" -}}
{{ include "moorage.fullname" . }}-weka-namespace
{{- end -}}

{{/* The role that a RoleBinding gives the account of a tenant's namespace there. */}}
{{- define "moorage.collector.tenantRole" -}}
{{ include "moorage.fullname" . }}-collector-tenant
{{- end -}}

{{/* The role that a RoleBinding gives the account of a namespace that holds OpenCGA there. */}}
{{- define "moorage.opencga.namespaceRole" -}}
{{ include "moorage.fullname" . }}-opencga-namespace
{{- end -}}

{{/* The role that a RoleBinding gives the account of a namespace that holds caches there. */}}
{{- define "moorage.xsld.namespaceRole" -}}
{{ include "moorage.fullname" . }}-xsld-namespace
{{- end -}}

{{/* The role that a RoleBinding gives the account of a namespace that holds a Runtime there. */}}
{{- define "moorage.kre.namespaceRole" -}}
{{ include "moorage.fullname" . }}-kre-namespace
{{- end -}}

{{/* The names of the systems that are on, as a JSON list. */}}
{{- define "moorage.systems" -}}
{{- $on := list -}}
{{- range $name, $system := .Values.systems -}}
{{- if $system.enabled -}}
{{- $on = append $on $name -}}
{{- end -}}
{{- end -}}
{{- $on | sortAlpha | toJson -}}
{{- end -}}

{{/* One source of charts: a registry, where one is named, else the folder (which may be there as a default only). */}}
{{- define "moorage.chartSource" -}}
{{- if .oci -}}
{{ omit . "folder" | toJson }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{/* The names of all leases, as a JSON list; that of a single process is there always, as shards hold it together. */}}
{{- define "moorage.leases" -}}
{{- $names := list .Values.leaderElection.leaseName -}}
{{- if gt (int .Values.leaderElection.shards) 1 -}}
{{- range $n := until (int .Values.leaderElection.shards) -}}
{{- $names = append $names (printf "%s-%d" $.Values.leaderElection.leaseName $n) -}}
{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* What `moorage run` reads. */}}
{{- define "moorage.config" -}}
{{- $systems := dict -}}
{{- $accounts := include "moorage.accounts" $ -}}
{{- with .Values.systems.collector -}}
{{- if .enabled -}}
{{- $own := dict "accounts" $accounts "tenantClusterRole" (include "moorage.collector.tenantRole" $) -}}
{{- $clusters := dict -}}
{{- range $name, $source := .charts.clusters -}}
{{- $_ := set $clusters $name (include "moorage.chartSource" $source | fromJson) -}}
{{- end -}}
{{- $charts := dict "default" (include "moorage.chartSource" .charts.default | fromJson) "clusters" $clusters -}}
{{- $_ := set $systems "collector" (merge $own (dict "charts" $charts) (omit . "enabled" "extraTenantRules" "charts")) -}}
{{- end -}}
{{- end -}}
{{- with .Values.systems.opencga -}}
{{- if .enabled -}}
{{- $own := dict "accounts" $accounts "clusterRole" (include "moorage.opencga.namespaceRole" $) -}}
{{- $_ := set $systems "opencga" (merge $own (omit . "enabled")) -}}
{{- end -}}
{{- end -}}
{{- with .Values.systems.weka -}}
{{- if .enabled -}}
{{- $own := dict "accounts" $accounts "clusterRole" (include "moorage.weka.namespaceRole" $) -}}
{{- $_ := set $systems "weka" (merge $own (omit . "enabled")) -}}
{{- end -}}
{{- end -}}
{{- with .Values.systems.xsld -}}
{{- if .enabled -}}
{{- $own := dict "accounts" $accounts "clusterRole" (include "moorage.xsld.namespaceRole" $) -}}
{{- $_ := set $systems "xsld" (merge $own (omit . "enabled")) -}}
{{- end -}}
{{- end -}}
{{- with .Values.systems.kre -}}
{{- if .enabled -}}
{{- $own := dict "accounts" $accounts "clusterRole" (include "moorage.kre.namespaceRole" $) -}}
{{- if $.Values.namespaceOnly -}}
{{- $own = dict -}}
{{- end -}}
{{- $_ := set $systems "kre" (merge $own (omit . "enabled" "extraTenantRules")) -}}
{{- end -}}
{{- end -}}
leaderElection:
  {{- toYaml .Values.leaderElection | nindent 2 }}
http:
  port: 8080
logLevel: {{ .Values.logLevel }}
events: {{ .Values.events }}
workers: {{ .Values.workers }}
helmRuns: {{ .Values.helmRuns }}
{{- if .Values.namespaceOnly }}
namespaceOnly: true
{{- end }}
{{- /* Beyond the drain: events go out, the lease is released, connections close. */}}
drainSeconds: {{ sub .Values.terminationGracePeriodSeconds 20 }}
systems:
  {{- toYaml $systems | nindent 2 }}
{{- end -}}

{{/* The names of Secrets with the credentials of chart registries, each once, as a JSON list. */}}
{{- define "moorage.chartSecrets" -}}
{{- $names := list -}}
{{- with .Values.systems.collector -}}
{{- if .enabled -}}
{{- range prepend (values .charts.clusters) .charts.default -}}
{{- with .secretRef -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end -}}
