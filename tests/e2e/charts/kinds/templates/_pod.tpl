{{- define "kinds.pod" -}}
metadata:
  labels:
    app: {{ .Release.Name }}
  annotations:
    example.com/note: one
spec:
  automountServiceAccountToken: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: main
      image: moorage.dev/collector:0.165.0
      args: ["--config=yaml:receivers::nop:", "--config=yaml:exporters::nop:", "--version"]
      env:
        - name: WORD
          value: hello
      ports:
        - name: http
          containerPort: 8080
      resources:
        requests:
          cpu: 10m
          memory: 16Mi
        limits:
          memory: 64Mi
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: empty
          mountPath: /data
  volumes:
    - name: empty
      emptyDir:
        sizeLimit: 1Mi
{{- end }}
