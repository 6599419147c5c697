import type { Level } from './finding.ts'
import type { Position } from './manifest.ts'
import { rules } from './rules.ts'

/** A finding with its file and position. */
export interface LocatedFinding extends Position {
  readonly file: string
  readonly rule: string
  readonly level: Level
  readonly message: string
  /** The object it is about: `Deployment default/web`. */
  readonly object: string
}

/** A log in SARIF 2.1.0 (OASIS), as code scanners take it. */
export const sarif = (findings: readonly LocatedFinding[], version: string): object => ({
  $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
  version: '2.1.0',
  runs: [
    {
      tool: {
        driver: {
          name: 'nodehub lint',
          version,
          rules: rules.map(({ id, title, reason, level, document }) => ({
            id,
            shortDescription: { text: title },
            fullDescription: { text: reason },
            defaultConfiguration: { level },
            helpUri: document,
          })),
        },
      },
      results: findings.map(({ file, line, column, rule, level, message, object }) => ({
        ruleId: rule,
        ruleIndex: rules.findIndex(({ id }) => id === rule),
        level,
        message: { text: `${object}: ${message}.` },
        locations: [
          {
            physicalLocation: {
              artifactLocation: { uri: encodeURI(file) },
              region: { startLine: line, startColumn: column },
            },
          },
        ],
      })),
    },
  ],
})
