import { STATUS_CODES } from '../../base/node-http.ts'

/** Reason phrases in which Go's net/http, and so an API server, differs from Node. */
const ofGo: Readonly<Record<number, string>> = {
  413: 'Request Entity Too Large',
  414: 'Request URI Too Long',
  416: 'Requested Range Not Satisfiable',
  418: "I'm a teapot",
}

/** The reason phrase that an API server sends; '' for a code without one. */
export const reasonPhrase = (code: number): string => ofGo[code] ?? STATUS_CODES[code] ?? ''
