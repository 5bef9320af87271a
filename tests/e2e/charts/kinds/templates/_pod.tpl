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
      args: ["--config=env:CONFIGURATION"]
      env:
        - name: CONFIGURATION
          value: >-
            {receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:4318"}}}}, exporters: {debug: {}},
            service: {telemetry: {metrics: {level: none}}, pipelines: {logs: {receivers: [otlp], exporters: [debug]}}}}
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
