// What the server sends, as types. Nothing here runs; view.py and lesson.py say what
// the words mean.

/**
 * @typedef {number | null} Value  a number, or none
 *
 * @typedef {object} Line  a line of the board: a row, or tokens of it
 * @property {number} row
 * @property {number | null} first  its first token; null if lines are rows
 * @property {number | null} last
 * @property {number} group  lines of one group are joined by a bracket
 * @property {boolean} head  the row's own cells are shown on it
 *
 * @typedef {[low: Value, anchor: Value, high: Value, edge: number]} Window  edge: 1 or -1
 * for the end that can stop the token
 * @typedef {[first: number, last: number, words: string]} Lane  lines with one denominator
 *
 * @typedef {object} Column  a column of the table
 * @property {string} name
 * @property {string} title
 * @property {string} kind
 * @property {string} help
 *
 * @typedef {string | boolean | null} Cell  as typed; a mask as "101"
 *
 * @typedef {object} AxisSpec  how far an axis reaches; with a unit it is symlog
 * @property {number} low
 * @property {number} high
 * @property {Value} unit
 *
 * @typedef {object} Handles  what is dragged, line by line
 * @property {string} column
 * @property {string} title
 * @property {string[]} columns  those that move together
 * @property {Value[]} values
 * @property {Value[]} before
 * @property {AxisSpec} axis
 *
 * @typedef {object} Panel  results on one axis, line by line
 * @property {string} title
 * @property {string} [help]
 * @property {[string, string]} [ends]  what the axis' ends mean
 * @property {[string, string]} [briefly]  the same, if there is little room
 * @property {Value[][]} engines
 * @property {string[][]} text
 * @property {number[]} differ
 * @property {number[]} flips
 * @property {Value[][]} [ghosts]
 * @property {[number, number]} reach  before the answer, and now
 * @property {[Value, Value]} unit  if it is symlog; before the answer, and now
 *
 * @typedef {object} Cause  what one engine compares, line by line
 * @property {number[]} group
 * @property {string} say
 * @property {Value[]} at
 * @property {string} [counts]
 * @property {Value[]} [scale]
 *
 * @typedef {object} Choice
 * @property {string} text
 * @property {Value} place
 * @property {[Value, Value] | null} region
 *
 * @typedef {object} Verdict
 * @property {[Value, Value]} values
 * @property {[string, string]} text
 * @property {boolean} right
 * @property {string} sentence
 * @property {string} why
 * @property {string} rule
 *
 * @typedef {object} OtherBatch  about a batch that is not the case's own
 * @property {string} source  where it came from
 * @property {string} rule
 * @property {string} [sentence]  what the engines do to it; after the answer
 * @property {string} [choice]  the reader's answer
 * @property {boolean} [right]
 *
 * @typedef {object} Question  the box
 * @property {string} mechanism  what the faulty engine does
 * @property {string} question
 * @property {number} row  the row in question, where it is now; -1 for a removed one
 * @property {number | null} [token]
 * @property {Choice[]} choices
 * @property {string} [label]
 * @property {boolean} [reveals]
 * @property {string} [skip]  what the way past the question is called
 * @property {boolean} [over]  no vote counts any more
 * @property {number | null} guess
 * @property {Value} place
 * @property {Verdict} [verdict]
 * @property {OtherBatch} [otherBatch]
 *
 * @typedef {object} Challenge
 * @property {number} at
 * @property {number} count
 * @property {boolean[]} done  those that were solved before
 * @property {string} goal
 * @property {string} allowed
 * @property {string} hint
 * @property {string} insight
 * @property {boolean} solved
 * @property {boolean} shown
 * @property {string} missing
 * @property {string} live
 * @property {number | null} row
 *
 * @typedef {object} Stage
 * @property {string} name
 * @property {string[]} texts  of each engine
 * @property {string[]} [slopes]  of each engine
 *
 * @typedef {object} Chapter
 * @property {string} title
 * @property {boolean} open  its stages are shown; else they are one mark
 * @property {Stage[]} stages
 * @property {number} result  the stage whose number the chapter shows
 *
 * @typedef {object} Track  the path
 * @property {number} row
 * @property {number | null} token
 * @property {Chapter[]} chapters
 * @property {string | null} parts  the first stage in which the engines differ
 * @property {string} open  the stage that is shown row by row, "" for none
 *
 * @typedef {object} Fixed  a board on which one handle moves, over so many values
 * @property {number} line
 * @property {number[]} values
 *
 * @typedef {object} Data  what the board shows
 * @property {string} name
 * @property {string} epoch
 * @property {number} ack
 * @property {number} version
 * @property {boolean} [behind]  the rest of the page has to be drawn
 * @property {string} [formula]  of the row or token that is selected, as HTML
 * @property {[query: string, otherNames: string[]]} [address]  the page's own parameters, and
 *   names of those that are not
 * @property {number} row
 * @property {[number, number]} history
 * @property {boolean} edited
 * @property {string[]} notes
 * @property {[number, number, string] | null} [regrouped]  the group size of pasted rows,
 *   that of the settings, and both in a sentence
 * @property {string} overflow  which numbers are too large
 * @property {string} source  where the batch came from
 * @property {boolean} covered
 * @property {string[]} names
 * @property {string} stale
 * @property {number} tokens
 * @property {string[]} locked
 * @property {Column[]} columns
 * @property {Cell[][]} rows
 * @property {Record<string, string>} lists
 * @property {Record<string, [string, string]>} refused
 * @property {[number, number, number, number, boolean][] | null} [lines]  see Line
 * @property {number} [token]  the selected token
 * @property {boolean} [byPosition]  the tokens of one position are together
 * @property {string} [masked]  "1" if a line's token is masked
 * @property {Window[][]} [windows]  by engine and line
 * @property {string[]} [ratios]  of each line
 * @property {[string, Value[]][]} [ticks]
 * @property {Lane[][]} [lanes]  by engine
 * @property {[number, string][]} [rules]  the line before which there is one, and words
 * @property {[string, string][]} [legend]
 * @property {string[]} [tokenNames]  of each line
 * @property {string[]} [advantages]  of each row
 * @property {Handles} handles
 * @property {AxisSpec & {title: string}} [causeAxis]  of the brackets, if they cannot
 * share that of the handles
 * @property {[Value[], Value[]]} [turns]  by engine, on each line the dragged number at
 * which the push is 0
 * @property {Panel[]} panels
 * @property {number} numbers
 * @property {string} baseline
 * @property {string} hollow
 * @property {Cause[]} causes
 * @property {Value[][]} [second]
 * @property {string} summary
 * @property {Question} [box]
 * @property {number[]} [crowd]  where a class put its guesses
 * @property {Challenge} [challenge]
 * @property {Track} [path]
 * @property {string} [progress]
 * @property {boolean} [unnamed]
 * @property {Fixed} [fixed]
 *
 * @typedef {object} Edit  what the learner did; see cases/edits.py
 * @property {string} do
 * @property {number} [n]
 * @property {number} [gesture]
 * @property {boolean} [commit]  the gesture ends with this edit
 * @property {string} [name]  of a setting
 * @property {number} [row]
 * @property {number | null} [token]
 * @property {number} [to]
 * @property {number} [at]
 * @property {number} [start]
 * @property {number} [stop]
 * @property {string} [column]
 * @property {string} [text]
 * @property {string} [stage]
 * @property {string | boolean} [value]
 *
 * @typedef {object} Message
 * @property {string} epoch
 * @property {Edit[]} edits
 *
 * @typedef {object} Component  what Streamlit gives a component
 * @property {any[]} data
 * @property {ShadowRoot} parentElement
 * @property {(name: string, value: unknown) => void} setStateValue
 * @property {(name: string, value: unknown) => void} setTriggerValue
 */

export {};
