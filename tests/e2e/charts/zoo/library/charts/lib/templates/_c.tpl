{{- define "lib.configmap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  labels: {chart: "{{ .top.Chart.Name }}-{{ .top.Chart.Version | replace "+" "_" }}"}
{{- end -}}
