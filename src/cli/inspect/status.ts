import type { HubStatus } from '../../hub/wiring/status/document.ts'
import { aligned } from '../aligned.ts'
import { hubStatus } from './hub-status.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** The whole status document. Exit code 1: the hub is not ready. */
export const status = inspection<HubStatus>({
  read: hubStatus,
  table: ({ node, version, ready, link, checks, notes, upstreams }) =>
    paragraphs(
      `nodehub ${version} on ${node} is ${ready ? 'ready' : 'not ready'} and ${linkText(link)}.\n`,
      aligned(
        ['CHECK', 'RESULT'],
        checks.map(({ name, fault }) => [name, fault ?? 'ok']),
      ),
      aligned(
        ['API SERVER', 'HEALTH', 'SINCE'],
        upstreams.map(({ origin, health, since }) => [origin, health, since]),
      ),
      notes.map((line) => `${line}\n`).join(''),
    ),
  code: ({ ready }) => (ready ? 0 : 1),
})

function linkText({ online, since }: HubStatus['link']): string {
  if (online === null) return 'has not probed an API server yet'
  return `${online ? 'online' : 'offline'} since ${since}`
}
