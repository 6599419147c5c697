import { lifecycle, probe } from './lifecycle.ts'
import { localObjectReference, objectFieldSelector, resourceFieldSelector } from './reference.ts'
import { securityContext } from './security.ts'
import {
  bool,
  inline,
  int32,
  list,
  map,
  message,
  of,
  optional,
  quantity,
  shown,
  string,
} from './notation.ts'

// kubernetes/api core/v1

const containerPort = message('ContainerPort', {
  name: string(1),
  hostPort: int32(2),
  containerPort: shown(int32(3)),
  protocol: string(4),
  hostIP: string(5),
})

const configMapEnvSource = message('ConfigMapEnvSource', {
  localObjectReference: inline(1, localObjectReference),
  optional: optional(bool(2)),
})

const secretEnvSource = message('SecretEnvSource', {
  localObjectReference: inline(1, localObjectReference),
  optional: optional(bool(2)),
})

const envFromSource = message('EnvFromSource', {
  prefix: string(1),
  configMapRef: optional(of(2, configMapEnvSource)),
  secretRef: optional(of(3, secretEnvSource)),
})

const configMapKeySelector = message('ConfigMapKeySelector', {
  localObjectReference: inline(1, localObjectReference),
  key: shown(string(2)),
  optional: optional(bool(3)),
})

const secretKeySelector = message('SecretKeySelector', {
  localObjectReference: inline(1, localObjectReference),
  key: shown(string(2)),
  optional: optional(bool(3)),
})

const fileKeySelector = message('FileKeySelector', {
  volumeName: shown(string(1)),
  path: shown(string(2)),
  key: shown(string(3)),
  optional: optional(bool(4)),
})

const envVarSource = message('EnvVarSource', {
  fieldRef: optional(of(1, objectFieldSelector)),
  resourceFieldRef: optional(of(2, resourceFieldSelector)),
  configMapKeyRef: optional(of(3, configMapKeySelector)),
  secretKeyRef: optional(of(4, secretKeySelector)),
  fileKeyRef: optional(of(5, fileKeySelector)),
})

const envVar = message('EnvVar', {
  name: shown(string(1)),
  value: string(2),
  valueFrom: optional(of(3, envVarSource)),
})

const resourceClaim = message('ResourceClaim', {
  name: shown(string(1)),
  request: string(2),
})

export const resourceRequirements = message('ResourceRequirements', {
  limits: map(quantity(1)),
  requests: map(quantity(2)),
  claims: list(of(3, resourceClaim)),
})

const containerResizePolicy = message('ContainerResizePolicy', {
  resourceName: shown(string(1)),
  restartPolicy: shown(string(2)),
})

const containerRestartRuleOnExitCodes = message('ContainerRestartRuleOnExitCodes', {
  operator: string(1),
  values: list(int32(2)),
})

const containerRestartRule = message('ContainerRestartRule', {
  action: string(1),
  exitCodes: optional(of(2, containerRestartRuleOnExitCodes)),
})

const volumeMount = message('VolumeMount', {
  name: shown(string(1)),
  readOnly: bool(2),
  recursiveReadOnly: optional(string(7)),
  mountPath: shown(string(3)),
  subPath: string(4),
  mountPropagation: optional(string(5)),
  subPathExpr: string(6),
})

const volumeDevice = message('VolumeDevice', {
  name: shown(string(1)),
  devicePath: shown(string(2)),
})

export const container = message('Container', {
  name: shown(string(1)),
  image: string(2),
  command: list(string(3)),
  args: list(string(4)),
  workingDir: string(5),
  ports: list(of(6, containerPort)),
  envFrom: list(of(19, envFromSource)),
  env: list(of(7, envVar)),
  resources: of(8, resourceRequirements),
  resizePolicy: list(of(23, containerResizePolicy)),
  restartPolicy: optional(string(24)),
  restartPolicyRules: list(of(25, containerRestartRule)),
  volumeMounts: list(of(9, volumeMount)),
  volumeDevices: list(of(21, volumeDevice)),
  livenessProbe: optional(of(10, probe)),
  readinessProbe: optional(of(11, probe)),
  startupProbe: optional(of(22, probe)),
  lifecycle: optional(of(12, lifecycle)),
  terminationMessagePath: string(13),
  terminationMessagePolicy: string(20),
  imagePullPolicy: string(14),
  securityContext: optional(of(15, securityContext)),
  stdin: bool(16),
  stdinOnce: bool(17),
  tty: bool(18),
})

// The same fields under the same numbers.
const ephemeralContainerCommon = message('EphemeralContainerCommon', container.fields)

export const ephemeralContainer = message('EphemeralContainer', {
  ephemeralContainerCommon: inline(1, ephemeralContainerCommon),
  targetContainerName: string(2),
})
