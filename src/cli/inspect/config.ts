import { settingsInForce, type SettingInForce } from '../../config/settings-in-force.ts'
import { processSources } from '../../config/process.ts'
import type { HubConfigReport } from '../../hub/wiring/config-map.ts'
import { aligned } from '../aligned.ts'
import { readWithFilters } from '../read-with-filters.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** Exit code 1: the configuration was changed to one that cannot be used. */
export const config = inspection<HubConfigReport>({
  help: `Without -- it is the configuration of the running hub. With the flags of nodehub start after --
it is what they, the environment and the file of --config would give, as check-config reads them:
nodehub inspect config -- --config=/etc/nodehub/config.yaml
`,
  takesRest: '[-- FLAG...]',
  read: (from) => (from.rest === undefined ? from.report('config') : wouldBeInForce(from.rest)),
  table: ({ settings, mistakes, configMap }) =>
    paragraphs(
      aligned(['SETTING', 'VALUE', 'FROM', 'CHANGES'], settings.map(row)),
      aligned(
        ['WAITS FOR THE NEXT START', 'VALUE', 'FROM'],
        settings.flatMap(({ name, next }) =>
          next ? [[name, next.value, next.origin ?? 'default']] : [],
        ),
      ),
      mistakes.length === 0
        ? ''
        : `The changed configuration cannot be used, the last good one is in force:\n${indented(mistakes)}`,
      configMap === null
        ? ''
        : `ConfigMap ${configMap.name} adds these components:\n${
            indented(
              Object.entries(configMap.adds).map(([key, names]) => `${key}: ${names.join(', ')}`),
            ) || '  none\n'
          }${indented(configMap.notes)}`,
    ),
  code: ({ mistakes }) => (mistakes.length === 0 ? 0 : 1),
})

const row = ({ name, value, origin, live }: SettingInForce): string[] => [
  name,
  value === '' ? '-' : value,
  origin ?? 'default',
  live ? 'live' : 'at the next start',
]

const indented = (lines: readonly string[]): string => lines.map((line) => `  ${line}\n`).join('')

/** Rejects with all mistakes. */
async function wouldBeInForce(argv: readonly string[]): Promise<HubConfigReport> {
  const result = await readWithFilters(processSources(argv))
  if ('mistakes' in result)
    throw new Error(`invalid arguments:\n${indented(result.mistakes).trimEnd()}`)
  const settings = settingsInForce(result.config, result.settings)
  return { settings, mistakes: [], configMap: null }
}
