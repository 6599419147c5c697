/** Grafana's JSON of a dashboard. */

interface Query {
  /** In PromQL; `$instance`, `$job` and `$__rate_interval` are Grafana's. */
  readonly expr: string
  /** In Grafana's template language; absent: the labels. */
  readonly legend?: string
}

interface Panel {
  readonly title: string
  readonly description: string
  readonly type: 'stat' | 'timeseries' | 'table'
  /** Grafana's name of a unit; absent: a plain number. */
  readonly unit?: string
  /** From these values on the panel is orange, and red. */
  readonly worseFrom?: readonly [orange: number, red: number]
  readonly queries: readonly Query[]
}

export interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

/** Grafana divides a dashboard's width by so many columns. */
const columns = 24

const yesNo = [
  {
    type: 'value',
    options: { '0': { text: 'no', color: 'red' }, '1': { text: 'yes', color: 'green' } },
  },
]

const datasource = { type: 'prometheus', uid: '${datasource}' }

/** The panels of a dashboard, rows included, from top to bottom. */
function panelsOf(rows: readonly Row[]): object[] {
  let y = 0
  let id = 0
  return rows.flatMap(({ title, panels }) => {
    const heading = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: columns, h: 1 },
    }
    y += 1
    const isSmall = panels.every(({ type }) => type === 'stat')
    const [w, h] = isSmall ? [columns / panels.length, 4] : [columns / 3, 8]
    const placed = panels.map((panel, i) => {
      const perLine = columns / w
      const gridPos = { x: (i % perLine) * w, y: y + Math.floor(i / perLine) * h, w, h }
      return panelOf(panel, ++id, gridPos)
    })
    y += Math.ceil((panels.length * w) / columns) * h
    return [heading, ...placed]
  })
}

function panelOf(
  { title, description, type, unit = 'short', worseFrom, queries }: Panel,
  id: number,
  gridPos: object,
): object {
  const isSwitch = unit === 'bool'
  const [orange, red] = worseFrom ?? []
  return {
    id,
    type,
    title,
    description,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit: isSwitch ? 'none' : unit,
        ...(isSwitch && { mappings: yesNo }),
        thresholds: {
          mode: 'absolute',
          steps: [
            { color: 'green', value: null },
            ...(orange === undefined ? [] : [{ color: 'orange', value: orange }]),
            ...(red === undefined ? [] : [{ color: 'red', value: red }]),
          ],
        },
      },
      overrides: [],
    },
    options:
      type === 'stat'
        ? { textMode: queries[0]?.legend === undefined ? 'value' : 'name', colorMode: 'value' }
        : {},
    targets: queries.map(({ expr, legend }, i) => ({
      refId: String.fromCodePoint(65 + i),
      datasource,
      expr,
      legendFormat: legend ?? '__auto',
      ...(type !== 'timeseries' && { instant: true }),
      ...(type === 'table' && { format: 'table' }),
    })),
  }
}

/** A choice at the top: the values of a query. */
export const variable = (name: string, query: string): object => ({
  name,
  type: 'query',
  datasource,
  query,
  refresh: 2,
  sort: 1,
})

/** Rows from top to bottom, each a heading and its panels. */
export function dashboard(
  uid: string,
  title: string,
  rows: readonly Row[],
  variables: readonly object[],
): object {
  return {
    uid,
    title,
    tags: ['nodehub'],
    schemaVersion: 39,
    timezone: 'browser',
    refresh: '1m',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus' },
        variable('job', 'label_values(nodehub_build_info, job)'),
        ...variables,
      ],
    },
    panels: panelsOf(rows),
  }
}
