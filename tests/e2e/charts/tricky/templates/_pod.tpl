{{- define "tricky.pod" -}}
terminationGracePeriodSeconds: 1
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end -}}
{{- define "tricky.container" -}}
image: {{ .Values.pod.image }}
imagePullPolicy: IfNotPresent
terminationMessagePolicy: File
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
      - ALL
{{- end -}}
