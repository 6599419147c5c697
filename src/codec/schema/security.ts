import { bool, int64, list, message, of, optional, shown, string } from './notation.ts'

// kubernetes/api core/v1

const capabilities = message('Capabilities', {
  add: list(string(1)),
  drop: list(string(2)),
})

const seLinuxOptions = message('SELinuxOptions', {
  user: string(1),
  role: string(2),
  type: string(3),
  level: string(4),
})

const windowsSecurityContextOptions = message('WindowsSecurityContextOptions', {
  gmsaCredentialSpecName: optional(string(1)),
  gmsaCredentialSpec: optional(string(2)),
  runAsUserName: optional(string(3)),
  hostProcess: optional(bool(4)),
})

const seccompProfile = message('SeccompProfile', {
  type: shown(string(1)),
  localhostProfile: optional(string(2)),
})

const appArmorProfile = message('AppArmorProfile', {
  type: shown(string(1)),
  localhostProfile: optional(string(2)),
})

export const securityContext = message('SecurityContext', {
  capabilities: optional(of(1, capabilities)),
  privileged: optional(bool(2)),
  seLinuxOptions: optional(of(3, seLinuxOptions)),
  windowsOptions: optional(of(10, windowsSecurityContextOptions)),
  runAsUser: optional(int64(4)),
  runAsGroup: optional(int64(8)),
  runAsNonRoot: optional(bool(5)),
  readOnlyRootFilesystem: optional(bool(6)),
  allowPrivilegeEscalation: optional(bool(7)),
  procMount: optional(string(9)),
  seccompProfile: optional(of(11, seccompProfile)),
  appArmorProfile: optional(of(12, appArmorProfile)),
})

const sysctl = message('Sysctl', {
  name: shown(string(1)),
  value: shown(string(2)),
})

export const podSecurityContext = message('PodSecurityContext', {
  seLinuxOptions: optional(of(1, seLinuxOptions)),
  windowsOptions: optional(of(8, windowsSecurityContextOptions)),
  runAsUser: optional(int64(2)),
  runAsGroup: optional(int64(6)),
  runAsNonRoot: optional(bool(3)),
  supplementalGroups: list(int64(4)),
  supplementalGroupsPolicy: optional(string(12)),
  fsGroup: optional(int64(5)),
  sysctls: list(of(7, sysctl)),
  fsGroupChangePolicy: optional(string(9)),
  seccompProfile: optional(of(10, seccompProfile)),
  appArmorProfile: optional(of(11, appArmorProfile)),
  seLinuxChangePolicy: optional(string(13)),
})
