{{/* Also the name of Services, which must be DNS labels: a release may have dots in its name and start with a digit. */}}
{{- define "seatrial.name" -}}
{{- $chart := .Values.nameOverride | default "seatrial" -}}
{{- $release := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- $name := .Values.fullnameOverride | default $release | replace "." "-" | trunc 40 | trimAll "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- fail (printf "\n\nThe names of Services would start with %q, which is not a letter: set fullnameOverride.\n" $name) -}}
{{- end -}}
{{ $name }}
{{- end }}

{{- define "seatrial.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Labels that select one program's pods; called with (list . "server"). */}}
{{- define "seatrial.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: seatrial
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/*
Labels of values: commonLabels, and those of one value, which win. Fails if they have a label of the chart, because a selector, a network policy or Helm
would not find the object by it. Called with (list . "podLabels" .Values.podLabels).
*/}}
{{- define "seatrial.ownLabels" -}}
{{- $values := (index . 0).Values -}}
{{- $reserved := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version"
  "app.kubernetes.io/managed-by" "app.kubernetes.io/part-of" "helm.sh/chart" -}}
{{- $own := dict -}}
{{- range list (list "commonLabels" $values.commonLabels) (slice . 1) -}}
{{- $value := first . -}}
{{- range $label, $content := index . 1 -}}
{{- if or (has $label $reserved) (hasPrefix "seatrial.dev/" $label) -}}
{{- fail (printf "\n\n%s cannot have the label %s: the chart sets it.\n" $value $label) -}}
{{- end -}}
{{- $_ := set $own $label $content -}}
{{- end -}}
{{- end -}}
{{- with $own }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* Labels of an object; called with (list . "server"), or (list . "server" "server.service.labels" .Values.server.service.labels) for further ones. */}}
{{- define "seatrial.labels" -}}
{{- $root := index . 0 -}}
{{- $further := gt (len .) 2 | ternary (slice . 2) (list "commonLabels" dict) -}}
{{ include "seatrial.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: seatrial
{{- /* A label cannot have the plus sign that Flux writes before the commit in the chart's version. */}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." | quote }}
{{- with include "seatrial.ownLabels" (prepend $further $root) }}
{{ . }}
{{- end }}
{{- end }}

{{/* Metadata of a pod template; called with (list . "server"). */}}
{{- define "seatrial.podMetadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- /* Without the chart's version, which Flux changes with each commit: a new one alone replaces no pods. */}}
  {{- omit (include "seatrial.labels" (list $root (index . 1) "podLabels" $root.Values.podLabels) | fromYaml) "helm.sh/chart" | toYaml | nindent 2 }}
  {{- if has (index . 1) (list "server" "gateway" "operator") }}
  seatrial.dev/metrics: "true"
  {{- end }}
{{- with $root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What Pod Security calls `restricted`. */}}
{{- define "seatrial.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.podUser }}
runAsGroup: {{ int64 .Values.podUser }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "seatrial.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "seatrial.pullSecretNames" -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names .name }}{{ end -}}
{{ join "," $names }}
{{- end }}

{{/* The database for a program; called with (list . "server"). Without a program's own address it has the owner's, and takes its role. "owner": all rights, for migrations. */}}
{{- define "seatrial.databaseEnv" -}}
{{- $root := index . 0 -}}
{{- $program := index . 1 -}}
{{- with $root }}
{{- if .Values.postgres.embedded.enabled }}
- name: DATABASE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .Values.postgres.embedded.existingSecret | quote }}
      key: {{ .Values.postgres.embedded.key | quote }}
- name: DATABASE_URL
  value: postgres://seatrial:$(DATABASE_PASSWORD)@{{ include "seatrial.name" . }}-postgres:5432/seatrial
{{- else }}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret | quote }}
      key: {{ get .Values.database.programKeys $program | default .Values.database.key | quote }}
{{- end }}
{{- if ne $program "owner" }}
{{- if .Values.database.roles }}
- name: DATABASE_ROLE
  value: seatrial_{{ $program }}
{{- end }}
{{- /* There is no Job for the embedded Postgres. */}}
- name: DATABASE_MIGRATE
  value: {{ or .Values.postgres.embedded.enabled (not .Values.migrations.enabled) | quote }}
{{- end }}
- name: DATABASE_POOL_SIZE
  value: {{ .Values.database.poolSize | quote }}
- name: HOME
  value: /tmp
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}
{{- end }}

{{- define "seatrial.encryptionEnv" -}}
- name: SEATRIAL_ENCRYPTION_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.keys.existingSecret | quote }}
      key: {{ .Values.keys.encryptionKey | quote }}
{{- end }}

{{/* Variables of a program, those of its values in place of the chart's own; called with (list $ownAsYaml .Values.server "server"). */}}
{{- define "seatrial.env" -}}
{{- $program := index . 2 -}}
{{- $given := (index . 1).env -}}
{{- $elsewhere := dict
  "DATABASE_URL" "it comes from the Secret of database.existingSecret"
  "DATABASE_ROLE" "it comes from database.roles"
  "DATABASE_MIGRATE" "it comes from migrations.enabled"
  "DATABASE_PASSWORD" "it comes from the Secret of postgres.embedded.existingSecret"
  "SEATRIAL_ENCRYPTION_KEY" "it comes from the Secret of keys.existingSecret"
  "SEATRIAL_CURSOR_KEY" "it comes from the Secret of keys.existingSecret"
  "SEATRIAL_SIGNING_KEYS" "it comes from the Secret of keys.existingSecret"
  "GATEWAY_CACHE_SECRET" "it comes from the Secret of gateway.cacheSecret"
  "HF_TOKEN" "hub tokens belong to users: seatrial admin hub-connections set"
  "SERVER_METRICS_PORT" "the chart's Service of metrics uses 9090"
  "GATEWAY_METRICS_PORT" "the chart's Service of metrics uses 9090"
  "SERVER_PORT" "the chart's Service and probes use 8080"
  "GATEWAY_PORT" "the chart's Service and probes use 8081"
  "OPERATOR_PORT" "the chart's Service and probes use 9090"
  "OPERATOR_ORGANIZATION" "it comes from organizations.own"
  "OPERATOR_ORGANIZATIONS" "it comes from organizations.namespaces"
  "OPERATOR_PULL_SECRETS" "it comes from image.pullSecrets"
  "GATEWAY_GRACE_SECONDS" "it comes from gateway.graceSeconds, which also sets the time that a pod has to end"
  "GATEWAY_SPOOL" "it comes from gateway.spool"
  "GATEWAY_SPOOL_BYTES" "it comes from gateway.spool.maxBytes, which also sets the size of the volume"
  "HF_ENDPOINT" "it comes from hub.endpoint, whose port the network policies open"
  "OPERATOR_COUNT_ALL_PODS" "it comes from operator.countAllPods, which also gives the right to list them"
  "OPERATOR_WEIGHTS_CLAIM" "it comes from weights.claimName, which also names the claim"
  "OPERATOR_WEBHOOK_URL" "it comes from the Secret of operator.webhook, whose port the network policies open"
  "OPERATOR_WEBHOOK_SECRET" "it comes from the Secret of operator.webhook"
  "OPERATOR_NAMESPACE" "it is the release's own namespace"
  "POD_IP" "it is the pod's own address" -}}
{{- $extra := (index . 1).extraEnv -}}
{{- $replaced := dict -}}
{{- range $name, $value := $given }}
{{- with get $elsewhere $name }}{{ fail (printf "\n\n%s.env.%s cannot be set: %s.\n" $program $name .) }}{{ end }}
{{- $_ := set $replaced $name true }}
{{- end }}
{{- range $extra }}
{{- $name := .name }}
{{- with get $elsewhere $name }}{{ fail (printf "\n\n%s.extraEnv has %s, which cannot be set: %s.\n" $program $name .) }}{{ end }}
{{- if hasKey $replaced $name }}{{ fail (printf "\n\n%s.extraEnv has %s twice, or %s.env has it too.\n" $program $name $program) }}{{ end }}
{{- $_ := set $replaced $name true }}
{{- end }}
{{- range (index . 0 | fromYamlArray) }}
{{- if not (hasKey $replaced .name) }}
- {{ toYaml . | indent 2 | trim }}
{{- end }}
{{- end }}
{{- range $name, $value := $given }}
- name: {{ $name | quote }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- with $extra }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where a program's pods go and how they resolve names: its own values, or those of all programs; called with (list . "server"). */}}
{{- define "seatrial.placement" -}}
{{- $values := (index . 0).Values -}}
{{- $own := get $values (index . 1) | default dict -}}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" }}
{{- with get $own $field | default (get $values $field) }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with merge (get $own "affinity" | default $values.affinity | default dict | deepCopy) (include "seatrial.zoneSpread" . | fromYaml) }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- range $field := list "dnsConfig" "hostAliases" }}
{{- with get $values $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* How a program's Deployment replaces its pods; called with (list . "server" "the chart's own strategy as YAML, or nothing"). */}}
{{- define "seatrial.replacement" -}}
{{- $values := (index . 0).Values -}}
revisionHistoryLimit: {{ int $values.revisionHistoryLimit }}
{{- with (get $values (index . 1)).strategy | default (index . 2 | fromYaml) }}
strategy:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Name of a program's ServiceAccount; called with (list . "server"). */}}
{{- define "seatrial.serviceAccountName" -}}
{{- $own := (get (index . 0).Values (index . 1)).serviceAccount -}}
{{- $own.name | default ($own.create | ternary (printf "%s-%s" (include "seatrial.name" (index . 0)) (index . 1)) "default") -}}
{{- end }}

{{/* A program's ServiceAccount, if the chart creates it; called with (list . "server"). */}}
{{- define "seatrial.serviceAccount" -}}
{{- $root := index . 0 -}}
{{- $own := (get $root.Values (index . 1)).serviceAccount -}}
{{- if $own.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "seatrial.serviceAccountName" . | quote }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels:
    {{- include "seatrial.labels" (list $root (index . 1) (printf "%s.serviceAccount.labels" (index . 1)) $own.labels) | nindent 4 }}
  {{- with $own.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{/* Spread over zones, for a Deployment's pods. It is a preference apart from the spread over nodes: the scheduler leaves nodes without one of the
     topology keys out of all constraints, and many clusters have no zones. An own podAntiAffinity replaces it. Called with (list . "server"). */}}
{{- define "seatrial.zoneSpread" -}}
{{- $root := index . 0 -}}
{{- $own := get $root.Values (index . 1) | default dict -}}
{{- $isDeployment := has (index . 1) (list "server" "gateway" "operator") -}}
{{- if and $root.Values.topologySpread.enabled $isDeployment (not $own.topologySpreadConstraints) }}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: topology.kubernetes.io/zone
        labelSelector:
          matchLabels:
            {{- include "seatrial.selector" . | nindent 12 }}
        matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{/* Spread over nodes, for a Deployment's pods; called with (list . "server"). */}}
{{- define "seatrial.spread" -}}
{{- $root := index . 0 -}}
{{- $selector := include "seatrial.selector" . -}}
{{- $own := (get $root.Values (index . 1)).topologySpreadConstraints -}}
{{- if $own }}
topologySpreadConstraints:
  {{- range $own }}
  {{- $given := hasKey . "labelSelector" | ternary dict (dict "labelSelector" (dict "matchLabels" ($selector | fromYaml))) }}
  - {{- merge $given . | toYaml | nindent 4 }}
  {{- end }}
{{- else if $root.Values.topologySpread.enabled }}
topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
    # Each revision separately; otherwise a roll-out would count the pods that it replaces.
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{/* Probes of a program that answers /healthz and /readyz; called with the port's name. */}}
{{- define "seatrial.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ . }} }
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 60
readinessProbe:
  httpGet: { path: /readyz, port: {{ . }} }
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  httpGet: { path: /healthz, port: {{ . }} }
  periodSeconds: 10
  timeoutSeconds: 3
{{- end }}

{{/* A Service of a program; called with (list . "server"). */}}
{{- define "seatrial.service" -}}
{{- $root := index . 0 -}}
{{- $service := (get $root.Values (index . 1)).service -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "seatrial.name" $root }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels:
    {{- include "seatrial.labels" (list $root (index . 1) (printf "%s.service.labels" (index . 1)) $service.labels) | nindent 4 }}
  {{- with $service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  {{- with $service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with $service.ipFamilies }}
  ipFamilies:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    {{- include "seatrial.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ $service.port }}
      targetPort: http
      protocol: TCP
{{- end }}

{{/* The bytes of a quantity of memory, such as 2Gi; called with the quantity. */}}
{{- define "seatrial.bytes" -}}
{{- $quantity := kindIs "string" . | ternary . (printf "%.0f" (float64 .)) -}}
{{- $number := regexFind "^[0-9.]+" $quantity -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- mulf (float64 $number) (get $units (trimPrefix $number $quantity)) | printf "%.0f" -}}
{{- end }}
