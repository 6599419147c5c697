{{- define "nodehub.name" -}}
{{ .Values.fullnameOverride | default .Chart.Name }}
{{- end }}

{{- define "nodehub.selector" -}}
app.kubernetes.io/name: nodehub
app.kubernetes.io/component: {{ include "nodehub.name" . }}
{{- end }}

{{- define "nodehub.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "nodehub.labels" -}}
{{ include "nodehub.selector" . }}
{{ include "nodehub.releaseLabels" . }}
{{- end }}

{{- define "nodehub.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* As requests name the service account of the controller, and the users that are it besides. */}}
{{- define "nodehub.controllers" -}}
{{- $account := printf "system:serviceaccount:%s:%s" .Release.Namespace (include "nodehub.name" .) -}}
{{- range $i, $user := prepend .Values.controllerUsers $account }}{{ if $i }}, {{ end }}{{ toJson $user }}{{ end -}}
{{- end }}

{{- /* Where API servers find the webhooks: of (list $ "/path"). */}}
{{- define "nodehub.service" -}}
namespace: {{ (first .).Release.Namespace }}
name: {{ include "nodehub.name" (first .) }}
port: 443
path: {{ last . }}
{{- end }}
