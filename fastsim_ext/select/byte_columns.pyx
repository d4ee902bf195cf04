"""Columns whose figures and totals take one byte: a change updates all of them, sixteen at a time.

The row of the memo becomes the row of the trees. That needs columns in the order of the memo's lanes and
demands whose ranks fit one byte; otherwise values are computed as for wider columns, with equal results.
"""

from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free
from libc.string cimport memset
from fastsim_ext.select.max_tree_updates cimport updates_put
from fastsim_ext.select.score_columns cimport ScoreColumn, ScoreColumns
from fastsim_ext.select.score_columns import fits_byte, normalises
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.scores.points cimport points_frag
from fastsim_ext.select.class_demands cimport CLEAR, ROOM, SMALL_UNFIT, thresholds_build, thresholds_row
from fastsim_ext.select.state_memo cimport memo_keep
from fastsim_ext.select.normalised_columns import NormalisedScoreColumns
from fastsim_ext.select.max_tree cimport ROW
from fastsim_ext.state.pod_outcomes cimport NO_NODE
from fastsim_ext.types cimport Node, Typical


def columns_class(plan):
    """The class of ScoreColumns for a plan; ``plan`` as in a Selector."""
    if normalises(plan):
        return NormalisedScoreColumns
    return ByteScoreColumns if fits_byte(plan) and plan["figure"][0] >= 0 else ScoreColumns


cdef class ByteScoreColumns(ScoreColumns):
    """The columns of a plan with one term, whose points take one byte in the memo."""

    def __dealloc__(self):
        free(self.thresholds.closed)

    cdef int revalue(self, int n, int first, int last) except -1 nogil:
        """Compute the values of node ``n`` for the columns from ``first`` to before ``last``."""
        cdef const Node* node = &self.nodes.records[n]
        cdef View view
        cdef char* row
        cdef int c
        if self.thresholds.changes != self.demands.changes:
            thresholds_build(&self.thresholds, self.demands)
        if last - first == 1 or not (self.aligned and self.memo.coarse and self.thresholds.exact):
            return ScoreColumns.revalue(self, n, first, last)
        if not self.nodes.present[n]:
            memset(&self.values[0], SMALL_UNFIT + NO_NODE, ROOM)
        else:
            row = self.memo.row(self.state(n))
            if thresholds_row(&self.thresholds, last, node, node.slots <= 0, <const int8_t*> row, &self.values[0]):
                self.fill_row(n, row, &view)
        for c in range((last + ROW - 1) // ROW):
            updates_put(&self.forests[c], n, &self.values[c * ROW])
        return 0

    cdef int fill_row(self, int n, char* row, View* view) except -1 nogil:
        """Compute the figures missing from the memo; columns of a family share their offers."""
        cdef const Typical* typical = &self.nodes.target.typical
        cdef const ScoreColumn* column
        cdef int32_t c
        cdef int figure, f
        self.nodes.load_view(&self.nodes.records[n], n, view)
        for f in range(self.n_families):
            view.n_offers = 0
            c = self.families[f].first
            while c >= 0:
                column = &self.columns[c]
                if self.values[c] == CLEAR:
                    figure = points_frag(&column.pod, column.most_cpu >= 0, typical, view)
                    memo_keep(row, column.lane, True, figure)
                    self.values[c] = <int8_t> figure
                c = column.next_in_family
        return 0
