import { parseJson, type JsonObject } from './json.ts'
import { textAt, valueAt } from './json-at.ts'

/** On a Node, `install` or `remove`: whether it is to have a hub. */
export const hubLabel = 'nodehub.io/hub'

/** On a Node: the `InstallReport` of the last installer that ran there, as JSON. */
const installAnnotation = 'nodehub.io/install'

const installStates = ['Installed', 'Removed', 'Refused', 'Failed'] as const

/** How an installation on a node went. */
export interface InstallReport {
  readonly state: (typeof installStates)[number]
  readonly image: string
  /** The release of the installer, which is that of the hub. */
  readonly version: string
  /** Why it was refused or failed, or what is left to do. */
  readonly message?: string
  /** The checksum of the kubelet's flags with which it was restarted last. */
  readonly kubelet?: string
  /** The node was adopted and went back by itself: it is not adopted while the report is there. */
  readonly rolledBack?: true
}

/** The report on a Node; `undefined` where there is none, or none that can be read. */
export function installReportIn(node: JsonObject): InstallReport | undefined {
  const report = parseJson(textAt(node, 'metadata', 'annotations', installAnnotation))
  const state = installStates.find((each) => each === textAt(report, 'state'))
  if (state === undefined) return undefined
  const [message, kubelet] = [textAt(report, 'message'), textAt(report, 'kubelet')]
  return {
    state,
    image: textAt(report, 'image'),
    version: textAt(report, 'version'),
    ...(message !== '' && { message }),
    ...(kubelet !== '' && { kubelet }),
    ...(valueAt(report, 'rolledBack') === true && { rolledBack: true }),
  }
}

/** A merge patch of a Node that sets its report. */
export const installReportPatch = (report: InstallReport): JsonObject => ({
  metadata: { annotations: { [installAnnotation]: JSON.stringify(report) } },
})
