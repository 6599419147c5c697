import { now } from '../../../base/clock.ts'
import type { Json } from '../json.ts'

/** How long ago a time was, as kubectl writes it; `<unknown>` where there is no time. */
export function ageOf(time: Json | undefined): string {
  const then = typeof time === 'string' ? Date.parse(time) : NaN
  return Number.isNaN(then) ? '<unknown>' : humanDuration(now() - then)
}

/** A duration in milliseconds in two or three digits (apimachinery pkg/util/duration). */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return joined(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return joined(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return joined(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? joined(years, 'y', days % 365, 'd') : `${years}y`
}

const joined = (large: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large}${unit}` : `${large}${unit}${small}${smallUnit}`
