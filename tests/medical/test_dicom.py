"""DICOM: how a frame is drawn, what is refused, and that only its pixels leave the machine."""

from __future__ import annotations

import base64
import copy
import json
import re
import struct
import sys
import traceback
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from pydantic import ValidationError

import langchain_svc as svc
from langchain_svc.images import without_metadata
from langchain_svc.sandbox import Sandbox

pydicom = pytest.importorskip("pydicom", reason="the extra dicom is not installed")
np = pytest.importorskip("numpy", reason="the extra dicom is not installed")
Image = pytest.importorskip("PIL.Image", reason="the extra dicom is not installed")

from pydicom import Dataset, uid  # noqa: E402
from pydicom.dataset import FileMetaDataset  # noqa: E402
from pydicom.encaps import encapsulate, get_frame  # noqa: E402

IDENTITY = {
    "PatientName": "Quuxberg^Zebulonia",
    "PatientID": "MRN-88231-77",
    "PatientBirthDate": "19630616",
    "OtherPatientNames": "Frobnitz^Z",
    "PatientAddress": "77 Wumpus Terrace",
    "InstitutionName": "Grobulin General",
    "ReferringPhysicianName": "Hackenbush^Dorble",
    "AccessionNumber": "ACC0099123",
    "StudyDescription": "Knee of Quuxberg",
    "OperatorsName": "Flurb^Op",
    "PatientComments": "lives in Flurbville",
    "StudyDate": "20240229",
    "DeviceSerialNumber": "SN-5551212",
}
MARKS = [
    "Quuxberg",
    "Zebulonia",
    "MRN-88231",
    "19630616",
    "Frobnitz",
    "Wumpus",
    "Grobulin",
    "Hackenbush",
    "ACC0099123",
    "Flurb",
    "20240229",
    "SN-5551212",
    "PRIVATEER",
]


def dataset(
    pixels, syntax=uid.ExplicitVRLittleEndian, bits=16, signed=False, kind="MONOCHROME2", **elements
):
    """A CT of these pixels (frames, rows, columns[, samples]) with everything that names a patient."""
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = uid.CTImageStorage
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = "1.2.3.4.5"
    ds.Modality = "CT"
    block = ds.private_block(0x0029, "PRIVATEER 1.0", create=True)
    block.add_new(1, "LO", "Quuxberg in a private element")
    pixels = np.asarray(pixels)
    colour = kind in {"RGB", "YBR_FULL", "YBR_FULL_422", "HSV"}
    ds.Rows, ds.Columns = shape = pixels.shape[-3:-1] if colour else pixels.shape[-2:]
    frames = pixels.size // (shape[0] * shape[1] * (3 if colour else 1))
    if frames > 1:
        ds.NumberOfFrames = frames
    ds.SamplesPerPixel = 3 if colour else 1
    if colour:
        ds.PlanarConfiguration = 0
    ds.PhotometricInterpretation = kind
    ds.BitsAllocated = 8 if bits <= 8 else 16
    ds.BitsStored, ds.HighBit = bits, bits - 1
    ds.PixelRepresentation = int(signed)
    raw = pixels.astype(f"<{'i' if signed else 'u'}{ds.BitsAllocated // 8}").tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    ds["PixelData"].VR = "OB" if bits <= 8 else "OW"
    return with_elements(ds, **IDENTITY, **elements)


def with_elements(ds, **elements):
    for name, value in elements.items():
        setattr(ds, name, value)
    return ds


def item(**elements):
    return with_elements(Dataset(), **elements)


def saved(ds, **options):
    file = BytesIO()
    pydicom.dcmwrite(file, ds, enforce_file_format=True, **options)
    return file.getvalue()


def compressed(ds, syntax):
    ds = copy.deepcopy(ds)
    ds.compress(syntax, generate_instance_uid=False)
    return ds


def holding(ds, frame, syntax):
    """The same with a frame that somebody else compressed."""
    ds.PixelData = encapsulate([frame])
    ds["PixelData"].is_undefined_length = True
    ds.file_meta.TransferSyntaxUID = syntax
    return ds


def drawn(source, **options):
    """The pixels of the picture, after a look at its file."""
    png = svc.DicomImage(source, **options).png()
    assert without_metadata(png) == png
    with Image.open(BytesIO(png)) as image:
        assert image.format == "PNG"
        assert image.mode in {"L", "RGB"}
        return np.asarray(image)


def refused(source, reason, **options):
    with pytest.raises(svc.SvcRequestError, match=reason) as caught:
        svc.DicomImage(source, **options).png()
    assert not any(mark in str(caught.value) for mark in MARKS)


def table(descriptor, values, **elements):
    lut = item(LUTDescriptor=descriptor, **elements)
    lut.add_new("LUTData", "OW", np.array(values, "<u2").tobytes())
    return lut


RAMP = np.array([[0, 100, 200], [300, 400, 1000]])
WIDE = np.arange(80 * 70).reshape(80, 70) % 251
HU = {"RescaleSlope": 2, "RescaleIntercept": -1000}
SUV = {"RescaleSlope": 0.001, "RescaleIntercept": 0}  # from 0 to 1
EXACT = {"WindowCenter": 128, "WindowWidth": 256, "VOILUTFunction": "LINEAR_EXACT"}


# -- drawing ---------------------------------------------------------------------------------------

HALF = [[0, 64, 128], [191, 255, 255]]
WHOLE = [[0, 26, 51], [76, 102, 255]]  # from the least to the greatest
DRAWN = [
    ({}, {}, WHOLE),
    ({"kind": "MONOCHROME1"}, {}, [[255, 229, 204], [179, 153, 0]]),
    ({"WindowCenter": [200.5, 40], "WindowWidth": [401, 80]}, {}, HALF),
    ({"WindowCenter": 200.5, "WindowWidth": 401, "kind": "MONOCHROME1"}, {}, [[255, 191, 127], [64, 0, 0]]),
    ({**HU, "WindowCenter": -599.5, "WindowWidth": 801}, {}, HALF),
    ({"WindowCenter": 200, "WindowWidth": 400, "VOILUTFunction": "LINEAR_EXACT"}, {}, HALF),
    ({"WindowCenter": 200, "WindowWidth": 400, "VOILUTFunction": "SIGMOID"}, {}, [[30, 69, 128], [186, 225, 255]]),
    ({"WindowCenter": 200, "WindowWidth": 0}, {}, WHOLE),
    ({"WindowCenter": 200, "WindowWidth": 0.5, "VOILUTFunction": "SIGMOID"}, {"window": (200.5, 401)}, HALF),
    ({**SUV, "WindowCenter": 0.2, "WindowWidth": 0.4}, {}, HALF),
    ({"RescaleSlope": -1, "RescaleIntercept": 0}, {"window": (-199.5, 401)}, [[255, 191, 128], [64, 0, 0]]),
    ({"VOILUTSequence": [table([4, 100, 8], [9, 50, 200, 255])]}, {}, [[9, 9, 255], [255, 255, 255]]),
    ({"VOILUTSequence": [table([4, 100, 16], [9, 50, 200, 65535])]}, {}, [[0, 0, 255], [255, 255, 255]]),
    ({"VOILUTSequence": [table([4, 100, 8], [9, 50, 200, 255])]}, {"window": (200.5, 401)}, HALF),
    ({"VOILUTSequence": [table([1024, 0, 8], [n // 4 for n in range(1024)])]}, {}, [[0, 25, 50], [75, 100, 250]]),
    ({"PixelPaddingValue": 1000}, {}, HALF),
    ({"PixelPaddingValue": 1000, "PixelPaddingRangeLimit": 400}, {}, [[0, 85, 170], [255, 255, 255]]),
    ({"PixelPaddingValue": 300, "PixelPaddingRangeLimit": 0}, {}, [[0, 0, 0], [0, 0, 255]]),
    ({}, {"blank": [(2, 1, 9, 9)]}, [[0, 64, 128], [191, 255, 0]]),
    ({"kind": "MONOCHROME1"}, {"blank": [(2, 1, 1, 1), (0, 0, 1, 1)]}, [[0, 255, 170], [85, 0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("elements", "options", "expected"), DRAWN)
def test_grey_values(elements, options, expected, tmp_path):
    ds, path = dataset(RAMP, **elements), tmp_path / "x"
    path.write_bytes(saved(ds))
    for source in (ds, path, path.read_bytes()):
        assert drawn(source, **options).tolist() == expected
    assert saved(ds) == path.read_bytes()


def test_stored_numbers_may_be_signed_packed_or_fill_a_part_of_their_bits():
    signed = dataset(RAMP - 500, signed=True, WindowCenter=-299.5, WindowWidth=401)
    assert drawn(signed).tolist() == HALF
    assert drawn(dataset(RAMP | 0x8000, bits=12)).tolist() == WHOLE
    lut = table([1024, 0, 8], [])
    lut["LUTData"].value = bytes(n // 4 for n in range(1024))
    assert drawn(dataset(RAMP, VOILUTSequence=[lut])).tolist() == [[0, 25, 50], [75, 100, 250]]
    lut = table([3, 0, 16], [0, 500, 1000], ModalityLUTType="US")
    ds = dataset([[0, 1, 2]], ModalityLUTSequence=[lut], WindowCenter=500.5, WindowWidth=1001)
    assert drawn(ds).tolist() == [[0, 128, 255]]


RGB = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [10, 20, 30]]])
ONE_SHADE = [
    (dataset(np.full((2, 2), 77)), {}),
    (dataset(RAMP, WindowCenter=-900, WindowWidth=2), {}),
    (dataset(RAMP, RescaleSlope=0, RescaleIntercept=5), {"window": (40, 400)}),
    (dataset(RAMP), {"blank": [(0, 0, 3, 2)]}),
]


@pytest.mark.parametrize(("ds", "options"), ONE_SHADE)
def test_a_picture_on_which_nothing_can_be_seen_is_an_error_that_says_so(ds, options):
    refused(ds, r"all of its pixels have one shade. Give another window=.*frame", **options)


SPACED = [item(PixelMeasuresSequence=[item(PixelSpacing=[2, 1])])]


@pytest.mark.parametrize(
    ("elements", "shape"),
    [
        ({}, (40, 60)),
        ({"PixelAspectRatio": [1, 1]}, (40, 60)),
        ({"PixelAspectRatio": [2, 1]}, (80, 60)),
        ({"PixelAspectRatio": [1, 2]}, (40, 120)),
        ({"PixelSpacing": [1.5, 0.5]}, (120, 60)),
        ({"ImagerPixelSpacing": [0.2, 0.2]}, (40, 60)),
        ({"PixelAspectRatio": [0, 1]}, (40, 60)),
        ({"PixelAspectRatio": [-1, 2]}, (40, 60)),
        ({"PixelAspectRatio": [100_000, 1]}, (2048, 1)),
        ({"SharedFunctionalGroupsSequence": SPACED}, (80, 60)),
    ],
)
def test_pixels_that_are_not_square_are_drawn_in_their_shape(elements, shape):
    ds = dataset(np.arange(40 * 60).reshape(40, 60), **elements)
    assert drawn(saved(ds)).shape == shape
    if shape == (2048, 1):  # only as large as is asked for
        refused(ds, "more than 50,000,000", longest_side=None)


def test_large_pictures_are_made_small_but_keep_their_shape():
    ds = dataset(np.arange(60 * 90).reshape(60, 90))
    assert drawn(ds).shape == (60, 90)
    assert drawn(ds, longest_side=45).shape == (30, 45)
    big = dataset(np.arange(21_000).reshape(10, 2100))
    assert drawn(big).shape[1] == 2048
    assert drawn(big, longest_side=None).shape == (10, 2100)


def test_colours_stay_right():
    assert (drawn(dataset(RGB, bits=8, kind="RGB")) == RGB).all()
    planes = dataset(RGB, bits=8, kind="RGB", PlanarConfiguration=1)
    planes.PixelData = np.moveaxis(RGB, -1, 0).astype("u1").tobytes()
    assert (drawn(planes) == RGB).all()
    ycc = np.asarray(Image.fromarray(RGB.astype(np.uint8)).convert("YCbCr"))
    assert abs(drawn(dataset(ycc, bits=8, kind="YBR_FULL")).astype(int) - RGB).max() <= 2
    deep = dataset(RGB * 257, bits=16, kind="RGB")
    assert (drawn(deep) == RGB).all()
    refused(dataset(RGB, bits=8, kind="HSV"), "cannot be decoded here")


@pytest.mark.parametrize("bits", [8, 16])
def test_palettes(bits):
    reds, greens, blues = RGB.reshape(4, 3).T * (257 if bits == 16 else 1)
    palette = {
        f"{name}PaletteColorLookupTable{part}": value
        for name, values in (("Red", reds), ("Green", greens), ("Blue", blues))
        for part, value in (
            ("Descriptor", [4, 0, bits]),
            ("Data", values.astype("<u2" if bits == 16 else "u1").tobytes()),
        )
    }
    ds = dataset([[0, 1], [2, 3]], bits=8, kind="PALETTE COLOR", **palette)
    assert (drawn(ds) == RGB).all()


# -- frames ----------------------------------------------------------------------------------------

FRAMES = np.stack([np.pad([[n, 0], [0, 100]], (0, 62)) for n in range(1, 6)])


@pytest.mark.parametrize("syntax", [None, uid.JPEG2000Lossless, uid.RLELossless])
def test_the_middle_frame_or_the_one_asked_for(syntax):
    def made(count):
        ds = dataset(FRAMES[:count], WindowCenter=50.5, WindowWidth=101)
        return compressed(ds, syntax) if syntax else ds

    def shown(count, **options):
        first = drawn(saved(made(count)), **options)[0, 0]
        return round(int(first) * 100 / 255)

    assert [shown(count) for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
    assert [shown(5, frame=n) for n in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
    refused(made(5), "it has 5 frames, counted from 1; there is no frame 6", frame=6)


def test_what_is_said_of_a_frame_goes_before_what_is_said_of_all():
    ds = dataset(np.stack([RAMP, RAMP]), WindowCenter=1, WindowWidth=2)
    shared = item(FrameVOILUTSequence=[item(WindowCenter=200.5, WindowWidth=401)])
    ds.SharedFunctionalGroupsSequence = [shared]
    frames = [item(FrameVOILUTSequence=[item(WindowCenter=200.5, WindowWidth=201)]), item()]
    frames[1].PixelValueTransformationSequence = [item(RescaleSlope=2, RescaleIntercept=0)]
    ds.PerFrameFunctionalGroupsSequence = frames
    assert drawn(saved(ds), frame=1).tolist() == [[0, 0, 128], [255, 255, 255]]
    assert drawn(saved(ds), frame=2).tolist() == [[0, 128, 255], [255, 255, 255]]


# -- transfer syntaxes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "ImplicitVRLittleEndian",
        "ExplicitVRLittleEndian",
        "ExplicitVRBigEndian",
        "DeflatedExplicitVRLittleEndian",
        "JPEG2000Lossless",
        "RLELossless",
    ],
)
def test_stored_plain_or_compressed_without_loss(name):
    syntax, ds = getattr(uid, name), dataset(WIDE, **EXACT)
    expected = drawn(ds)
    assert expected.max() > 200
    if syntax.is_compressed:
        ds = compressed(ds, syntax)
    elif syntax == uid.ExplicitVRBigEndian:
        ds.PixelData = WIDE.astype(">u2").tobytes()
    ds.file_meta.TransferSyntaxUID = syntax
    big = {} if syntax.is_little_endian else {"implicit_vr": False, "little_endian": False}
    assert (drawn(saved(ds, **big)) == expected).all()


def as_file(kind, pixels, **options):
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_jpeg(mode):
    smooth = np.add.outer(np.arange(40), np.arange(32)).astype(np.uint8) * 3
    picture = np.asarray(Image.fromarray(smooth).convert(mode))
    ds = dataset(picture, bits=8, kind="YBR_FULL_422" if mode == "RGB" else "MONOCHROME2")
    data = saved(holding(ds, as_file("JPEG", picture, quality=95), uid.JPEGBaseline8Bit))
    pixels = drawn(data, window=(128, 256)) if mode == "L" else drawn(data)
    assert abs(pixels.astype(int) - picture).max() <= 8


def test_jpeg_ls():
    # The example of ITU-T T.87, annex H.3.
    frame = bytes.fromhex(
        "ffd8fff7000b080004000401011100ffda0008010100000000c000006c80208e01c000005740"
        "00006ee6000001bc18000005d800009160ffd9"
    )
    ds = dataset(np.zeros((4, 4), int), bits=8, WindowCenter=128, WindowWidth=256)
    expected = [[0, 0, 90, 74], [68, 50, 43, 205], [64, 145, 145, 145], [100, 145, 145, 145]]
    assert drawn(saved(holding(ds, frame, uid.JPEGLSLossless))).tolist() == expected


@pytest.mark.parametrize("start", [struct.pack(">I4s", 0, b"jp2c"), None], ids=["last", "large"])
def test_jpeg_2000_with_long_headers(start):
    # More than a kilobyte of notes stands before the codestream, as some encoders write them.
    file = as_file("JPEG2000", WIDE)
    at = file.index(b"\xff\x4f\xff\x51")
    start = start or struct.pack(">I4sQ", 1, b"jp2c", 16 + len(file) - at)
    notes = struct.pack(">I4s", 2012, b"free") + b"\xff\x4f\xff\x51" + bytes(2000)
    ds = dataset(WIDE, bits=8, **EXACT)
    expected = drawn(ds)
    holding(ds, file[: at - 8] + notes + start + file[at:], uid.JPEG2000Lossless)
    assert (drawn(saved(ds)) == expected).all()
    ds.Rows = 79
    refused(saved(ds), "not of the size its header gives")


# -- what is refused -------------------------------------------------------------------------------


def bomb(syntax):
    """A file of a few pixels whose compressed data unfolds to far more."""
    ds, many = dataset(np.zeros((4, 4), int), bits=8), np.zeros((2000, 2000))
    if syntax == uid.RLELossless:
        frame = struct.pack("<16I", 1, 64, *[0] * 14) + b"\x81\x00" * 100_000
    elif syntax == uid.JPEGBaseline8Bit:
        frame = as_file("JPEG", many)
    else:
        large = compressed(dataset(many, bits=8), syntax)
        frame = get_frame(large.PixelData, 0, number_of_frames=1)
    return holding(ds, frame, syntax)


def test_a_deflated_file_inflates_to_a_bound():
    data = saved(dataset(WIDE, uid.DeflatedExplicitVRLittleEndian))
    refused(data[:-500], "damaged|no pixels")
    meta = data[: 144 + int.from_bytes(data[140:144], "little")]
    deflating = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    zeros = b"".join(deflating.compress(bytes(2**20)) for _ in range(130))
    refused(meta + zeros, "inflates to more than 134,217,728 bytes")
    # The same where the transfer syntax stands far behind other file meta information.
    version = b"\x02\0\1\0OB\0\0"
    far = meta.replace(version + b"\2\0\0\0\0\1", version + struct.pack("<I", 20_000) + bytes(20_000))  # fmt: skip
    assert len(far) > 20_000
    refused(far + zeros, "inflates to more")


NO_PICTURES = [
    ({"Modality": "SEG"}, "a segmentation"),
    ({"Modality": "OT", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.66.4"}, "a segmentation"),
    ({"Modality": "RTDOSE"}, "a dose distribution"),
    ({"Modality": "RTIMAGE"}, "an image of a radiation beam"),
    ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.481.1"}, "an image of a radiation beam"),
]


@pytest.mark.parametrize(("elements", "name"), NO_PICTURES)
@pytest.mark.parametrize("options", [{}, {"burned_in": "accept"}, {"blank": [(0, 0, 1, 1)]}])
def test_what_is_no_picture_is_refused_by_name(elements, name, options):
    ds = saved(dataset(RAMP, **elements))
    refused(ds, f"it is {name}.*give the result as PNG", **options)


def without(ds, name):
    del ds[name]
    return ds


def stored_as(ds, syntax):
    ds.file_meta.TransferSyntaxUID = syntax
    if syntax is None:
        del ds.file_meta.TransferSyntaxUID
    return ds


REFUSED = [
    (b"", "not a DICOM file"),
    (b"DICM" + bytes(200), "not a DICOM file"),
    (bytes(128) + b"DICM", "damaged|no pixels"),
    (bytes(128) + b"DICM" + b"Quuxberg" * 40, "damaged|no pixels|stored"),
    (without(dataset(RAMP), "PixelData"), "holds no pixels"),
    (saved(without(dataset(RAMP), "PixelData")), "holds no pixels"),
    (
        dataset(RAMP, Rows=60_000, Columns=60_000),
        "60000x60000 pixels, which is more than 50,000,000",
    ),
    (dataset(RAMP, Rows=0), "not the size of a picture"),
    (dataset(RAMP, NumberOfFrames=10**9), "not the size of a picture"),
    (dataset(RAMP, NumberOfFrames=-3), "not the size of a picture"),
    (dataset(RAMP, NumberOfFrames=7), "damaged"),
    (dataset(RAMP, BitsStored=99), "damaged"),
    (dataset(RAMP, PixelData=b"\0\0"), "damaged"),
    (dataset(RAMP, WindowCenter=5, WindowWidth=9, VOILUTFunction="X"), "damaged"),
    (stored_as(dataset(RAMP), None), "how its pixels are stored"),
    (stored_as(dataset(RAMP), uid.MPEG2MPML), "cannot be decoded here"),
    (stored_as(dataset(RAMP), uid.UID("1.2.3.4.5.6")), "cannot be decoded here"),
    (stored_as(dataset(RAMP), uid.UID("1.2.840.113619.5.2")), "cannot be decoded here"),
    (
        stored_as(compressed(dataset(WIDE), uid.JPEG2000Lossless), uid.JPEGLSLossless),
        "damaged|cannot be decoded",
    ),
    *(
        (form(bomb(syntax)), "not of the size its header gives")
        for syntax in (uid.RLELossless, uid.JPEG2000Lossless, uid.JPEGBaseline8Bit)
        for form in (copy.copy, saved)
    ),
    (Path("no/such/file"), "cannot be read: No such file"),
    (Path(__file__), "not a DICOM file"),
]


@pytest.mark.parametrize(("source", "reason"), REFUSED)
def test_what_is_refused(source, reason):
    refused(source, reason)


@pytest.mark.parametrize("frames", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 40, 79])
@pytest.mark.filterwarnings("error")
def test_a_part_of_the_rows_or_frames_never_passes_for_the_whole(rows, frames):
    ds = dataset(np.stack([WIDE] * frames), **EXACT)
    for changes in ({"Rows": rows}, {"PixelData": ds.PixelData * 2}):
        refused(with_elements(copy.deepcopy(ds), **changes), "more pixels than the rows and frames")


@pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
def test_blank_bytes_behind_the_last_row_are_padding():
    ds = dataset(WIDE, **EXACT)
    expected = drawn(ds)
    ds.PixelData += bytes(1000)
    assert (drawn(saved(ds)) == expected).all()


@pytest.mark.parametrize("syntax", [None, uid.JPEG2000Lossless, uid.RLELossless])
@pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
@pytest.mark.filterwarnings("ignore::EncodingWarning")
def test_cut_anywhere_it_is_refused_or_whole(syntax):
    data = saved(compressed(dataset(WIDE), syntax) if syntax else dataset(RAMP))
    for end in range(0, len(data), 7):
        try:
            svc.DicomImage(data[:end]).png()
        except svc.SvcRequestError as error:
            assert not any(mark in str(error) for mark in MARKS)


BAD_OPTIONS = [
    {"frame": 0},
    {"frame": True},
    {"window": (1, 0)},
    {"window": 5},
    {"window": (1, float("nan"))},
    {"blank": [(1, 2, 3)]},
    {"blank": [(-1, 0, 1, 1)]},
    {"blank": [(0, 0, 0, 1)]},
    {"burned_in": "maybe"},
    {"longest_side": 0},
    {"source": "Quuxberg.dcm"},
]


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_an_option_out_of_its_bounds_is_named(options):
    pattern = rf"(?m)^(DicomImage: )?{next(iter(options))}"
    with pytest.raises((TypeError, ValueError), match=pattern) as caught:
        svc.DicomImage(**{"source": b"Quuxberg", **options})
    assert "Quuxberg" not in str(caught.value)


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.delattr("langchain_svc.medical.dicom", raising=False)
    monkeypatch.setitem(sys.modules, "langchain_svc.medical.dicom", None)
    with pytest.raises(ImportError, match=r"langchain-svc\[dicom\]"):
        svc.DicomImage(saved(dataset(RAMP))).png()


# -- text in the picture ---------------------------------------------------------------------------

SECONDARY = "1.2.840.10008.5.1.4.1.1.7.2"
BURNED_IN = [
    ({}, ""),
    ({"BurnedInAnnotation": "NO"}, ""),
    ({"BurnedInAnnotation": "YES"}, "BurnedInAnnotation YES"),
    ({"Modality": "US"}, "does not say"),
    ({"Modality": "US", "BurnedInAnnotation": "NO"}, ""),
    ({"Modality": "MR"}, ""),
    ({"Modality": "CR"}, ""),
    *(
        ({"Modality": kind, "ImageType": ["DERIVED", made, "MPR"], **said}, reason)
        for kind in ("CR", "CT", "DX", "MG", "MR", "NM", "PT")
        for made, said, reason in (
            ("PRIMARY", {}, ""),
            ("SECONDARY", {}, "does not say"),
            ("SECONDARY", {"BurnedInAnnotation": "NO"}, ""),
        )
    ),
    ({"Modality": "OT"}, "does not say"),
    ({"SOPClassUID": SECONDARY}, "does not say"),
    ({"ConversionType": "DF"}, "does not say"),
    ({"ImageType": ["DERIVED", "SECONDARY", "SCREEN SAVE"]}, "does not say"),
    ({"RecognizableVisualFeatures": "YES", "BurnedInAnnotation": "NO"}, "can be recognised"),
]


@pytest.mark.parametrize(("elements", "reason"), BURNED_IN)
def test_text_in_the_picture_is_refused_unless_the_caller_says_otherwise(elements, reason):
    ds = dataset(RAMP, **elements)
    if reason:
        refused(saved(ds), reason)
        refused(ds, r"blank=\[...\]")
    else:
        assert drawn(saved(ds)).shape == (2, 3)
    assert drawn(ds, burned_in="accept")[1, 2] == 255
    assert drawn(ds, blank=[(2, 1, 1, 1)])[1, 2] == 0


# -- only pixels leave the machine -----------------------------------------------------------------


def all_bodies(box):
    """Every request as it came, with everything in base64 decoded as well."""
    bodies = []
    for request in box.requests:
        bodies += [request.body, request.query.encode(), str(request.headers).encode()]
        texts = re.findall(rb"[A-Za-z0-9+/]{40,}", request.body)
        bodies += [base64.b64decode(text + b"==") for text in texts]
    return bodies


GIVEN = {
    "bytes": saved(dataset(WIDE)),
    "dataset": dataset(WIDE),
    "image": svc.DicomImage(saved(dataset(WIDE)), window=(100, 200)),
    "compressed": saved(compressed(dataset(WIDE), uid.JPEG2000Lossless)),
    "many frames": saved(dataset(np.stack([WIDE] * 4))),
}


@pytest.mark.parametrize("form", GIVEN)
def test_what_names_the_patient_does_not_reach_the_service(form):
    source = GIVEN[form] if form == "image" else svc.DicomImage(GIVEN[form])
    record = svc.PatientContext(age=61, images=[source])
    store = svc.ImageStore()
    handle = store.add(source)
    with (
        Sandbox() as box,
        svc.SvcCancerRisk(**box.medical, patient=record) as risk,
        svc.SvcAnalyzeImage(**box.general, images=store) as analyze,
    ):
        risk.invoke({"symptoms": "a cough for weeks", "imaging_type": "chest CT"})
        analyze.invoke({"image": handle, "task": "describe"})
        bodies = all_bodies(box)
        (image,) = box.requests[0].json["images"]
    assert base64.b64decode(image).startswith(b"\x89PNG")
    assert sum(body.startswith(b"\x89PNG") for body in bodies) == 2
    assert not any(mark.encode() in body for body in bodies for mark in [*MARKS, "DICM"])
    assert store.get(handle).format == "PNG"


def test_a_store_takes_a_drawn_picture_and_says_so_where_it_gets_the_file(tmp_path):
    store, path, data = svc.ImageStore(), tmp_path / "picture.jpg", saved(dataset(WIDE))
    path.write_bytes(data)
    image = store.get(store.add(svc.DicomImage(path), label="a knee"))
    assert (image.format, image.width, image.height, image.label) == ("PNG", 70, 80, "a knee")
    assert image.data == svc.DicomImage(data)._repr_png_()
    for source in (path, str(path), data, base64.b64encode(data).decode()):
        with pytest.raises(svc.SvcRequestError, match=r"DICOM.*images\.add\(DicomImage\(path\)\)"):
            store.add(source)
    with pytest.raises(svc.SvcRequestError, match="DicomImage"):
        store.add(dataset(WIDE))
    with pytest.raises(svc.SvcRequestError, match=r"^This DICOM image.*BurnedInAnnotation YES"):
        store.add(svc.DicomImage(dataset(WIDE, BurnedInAnnotation="YES")))
    with pytest.raises(svc.SvcRequestError, match="more than 1,000"):
        svc.ImageStore(max_pixels=1000).add(svc.DicomImage(path))


def test_an_error_of_a_patients_image_names_its_place_only(tmp_path):
    with pytest.raises(ValueError, match=r"images\.1\n.*BurnedInAnnotation YES") as caught:
        screen = dataset(WIDE, BurnedInAnnotation="YES")
        svc.PatientContext(images=[svc.DicomImage(dataset(WIDE)), svc.DicomImage(screen)])
    assert not any(mark in str(caught.value) for mark in MARKS)
    for source in (tmp_path / "ct.dcm", dataset(WIDE), saved(dataset(WIDE))):
        with pytest.raises(ValueError, match=r"images\.0\n.*gives DICOM as DicomImage"):
            svc.PatientContext(images=[source])


def test_a_model_cannot_hand_dicom_to_a_decoder(monkeypatch):
    monkeypatch.setattr(svc.DicomImage, "png", None)
    text = base64.b64encode(saved(dataset(WIDE))).decode()
    args = {"symptoms": "a cough", "images": [text]}
    with Sandbox() as box, svc.SvcCancerRisk(**box.medical) as risk:
        message = risk.invoke({"name": risk.name, "args": args, "id": "1", "type": "tool_call"})
        assert box.requests == []
    assert message.status == "error"
    assert "PNG or JPEG" in message.content


def test_elements_that_name_a_patient_are_never_read(recwarn, caplog):
    ds = dataset(WIDE, Modality="CT", BodyPartExamined="QUUXBERG", ConversionType="QUUXBERG")
    ds.add(pydicom.DataElement("PatientBirthDate", "DA", "19630616", validation_mode=0))
    # Read, these would be warnings that repeat them.
    data = saved(ds).replace(b"19630616", b"no date!").replace(b"QUUXBERG", b"Quuxberg")
    assert drawn(data, burned_in="accept").shape == (80, 70)
    assert svc.PatientContext(images=[svc.DicomImage(data, burned_in="accept")]).imaging_type == "CT"  # fmt: skip
    assert [str(warning.message) for warning in recwarn] == []
    assert "uuxberg" not in caplog.text
    expected = (
        "DicomImage(frame=None, window=None, blank=(), burned_in='refuse', longest_side=2048)"
    )
    assert json.dumps(repr(svc.DicomImage(data))) == f'"{expected}"'


# -- what kind of picture --------------------------------------------------------------------------

KINDS = [
    ([{"BodyPartExamined": "CHEST"}], "chest CT"),
    ([{}], "CT"),
    ([{"Modality": "MR", "BodyPartExamined": "QUUXBERG"}], "MRI"),
    (
        [{"BodyPartExamined": "HEAD"}, {"BodyPartExamined": "HEAD"}, {"Modality": "PT"}],
        "head CT, PET",
    ),
    ([{"Modality": "OT", "BurnedInAnnotation": "NO"}], None),
]


@pytest.mark.parametrize(("headers", "kind"), KINDS)
@pytest.mark.parametrize("form", ["dataset", "bytes"])
def test_the_imaging_type_is_that_of_the_images(headers, kind, form):
    images = [dataset([[1, 2], [3, 4]], **header) for header in headers]
    images = [svc.DicomImage(saved(source) if form == "bytes" else source) for source in images]
    assert svc.PatientContext(images=images).imaging_type == kind
    assert svc.PatientContext(images=images, imaging_type="x").imaging_type == "x"


# -- whose it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["bytes", "dataset", "deflated"])
def test_an_image_of_the_expected_patient_is_taken_and_the_id_is_not_kept(form):
    source = dataset(WIDE)
    expected = "MRN-88231-77"
    if form == "bytes":
        source.SpecificCharacterSet, source.PatientID = "ISO_IR 192", "Jäger-7"
        expected = "Jäger-7"
    if form == "deflated":
        source.file_meta.TransferSyntaxUID = uid.DeflatedExplicitVRLittleEndian
    source = source if form == "dataset" else saved(source)
    image = svc.DicomImage(source, expect_patient_id=expected)
    assert image.png() == svc.DicomImage(source).png()
    assert expected not in f"{image}{[*vars(image)]}{image.expect_patient_id}"


ANOTHER = [
    ("MRN-88231-78", {}, "another one"),
    ("mrn-88231-77", {}, "another one"),
    ("MRN-88231-77", {"PatientID": ""}, "does not say whose it is"),
    ("  ", {}, "not empty"),
    (7, {}, "expect_patient_id"),
]


@pytest.mark.parametrize(("expected", "elements", "reason"), ANOTHER)
def test_an_image_of_somebody_else_is_refused(expected, elements, reason):
    data = saved(with_elements(dataset(WIDE), **elements))
    with pytest.raises((svc.SvcRequestError, ValidationError), match=reason) as caught:
        svc.DicomImage(data, expect_patient_id=expected)
    captured = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    library = [str(frame.locals) for frame in captured.stack if frame.filename != __file__]
    assert caught.value.__context__ is None
    assert not [text for text in (str(caught.value), *library) if "88231" in text]


def test_a_keyword_that_nobody_knows_is_refused():
    with pytest.raises(ValidationError, match="expected_patient"):
        svc.DicomImage(saved(dataset(WIDE)), expected_patient="MRN-88231-77")
