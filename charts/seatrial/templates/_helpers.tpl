{{- define "seatrial.name" -}}
{{- if contains "seatrial" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-seatrial" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "seatrial.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels that select one program's pods; called with (list . "server"). */}}
{{- define "seatrial.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: seatrial
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "seatrial.labels" -}}
{{- $root := index . 0 -}}
{{ include "seatrial.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: seatrial
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{/* What Pod Security calls `restricted`. */}}
{{- define "seatrial.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.podUser }}
runAsGroup: {{ .Values.podUser }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "seatrial.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "seatrial.databaseEnv" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
- name: DATABASE_POOL_SIZE
  value: {{ .Values.database.poolSize | quote }}
- name: HOME
  value: /tmp
{{- end }}

{{- define "seatrial.encryptionEnv" -}}
- name: SEATRIAL_ENCRYPTION_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.keys.existingSecret }}
      key: {{ .Values.keys.encryptionKey }}
{{- end }}

{{- define "seatrial.extraEnv" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- define "seatrial.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
