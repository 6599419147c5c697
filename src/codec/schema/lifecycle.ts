import {
  inline,
  int32,
  int64,
  intOrString,
  list,
  message,
  of,
  optional,
  shown,
  string,
} from './notation.ts'

// kubernetes/api core/v1

const execAction = message('ExecAction', {
  command: list(string(1)),
})

const httpHeader = message('HTTPHeader', {
  name: shown(string(1)),
  value: shown(string(2)),
})

const httpGetAction = message('HTTPGetAction', {
  path: string(1),
  port: intOrString(2),
  host: string(3),
  scheme: string(4),
  httpHeaders: list(of(5, httpHeader)),
})

const tcpSocketAction = message('TCPSocketAction', {
  port: intOrString(1),
  host: string(2),
})

const grpcAction = message('GRPCAction', {
  port: shown(int32(1)),
  service: shown(optional(string(2))),
})

const probeHandler = message('ProbeHandler', {
  exec: optional(of(1, execAction)),
  httpGet: optional(of(2, httpGetAction)),
  tcpSocket: optional(of(3, tcpSocketAction)),
  grpc: optional(of(4, grpcAction)),
})

export const probe = message('Probe', {
  handler: inline(1, probeHandler),
  initialDelaySeconds: int32(2),
  timeoutSeconds: int32(3),
  periodSeconds: int32(4),
  successThreshold: int32(5),
  failureThreshold: int32(6),
  terminationGracePeriodSeconds: optional(int64(7)),
})

const sleepAction = message('SleepAction', {
  seconds: shown(int64(1)),
})

const lifecycleHandler = message('LifecycleHandler', {
  exec: optional(of(1, execAction)),
  httpGet: optional(of(2, httpGetAction)),
  tcpSocket: optional(of(3, tcpSocketAction)),
  sleep: optional(of(4, sleepAction)),
})

export const lifecycle = message('Lifecycle', {
  postStart: optional(of(1, lifecycleHandler)),
  preStop: optional(of(2, lifecycleHandler)),
  stopSignal: optional(string(3)),
})
