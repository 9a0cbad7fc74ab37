#!/usr/bin/env python3
"""Prints internal/shape/transit/vocabulary.txt, which texts and shapes refer to on their way
(docs/wire-format.md, section 4.1): vocabulary.py > internal/shape/transit/vocabulary.txt

It is part of the wire format: a change of one octet makes another format. It is written from the
standards, not from messages: names, namespaces and forms, each with the standard it comes from, the
most frequent last, since near copies take less.

The lines of a text are put together without the white space before them; `~` stands for a line end,
`</>` ends the innermost element that is open. {p: A B[C] D@x@y} stands for elements with the prefix
p, `<p:A></p:A><p:B><p:C></p:C></p:B><p:D x="" y=""></p:D>`, {p; A B} for their start tags only."""

import re
import sys


def elements(prefix, names, ends):
    """The elements of {prefix: names}, or their start tags only."""
    out, opened, last = [], [], ""
    for token in re.findall(r"[^\s\[\]]+|[\[\]]", names) + ["]"]:
        if token == "[":
            opened.append(last)
            last = ""
            continue
        if last and ends:
            out.append(f"</{last}>")
        if token == "]":
            last = opened.pop() if opened else ""
            continue
        name, *attributes = token.split("@")
        last = name if ":" in name or not prefix else f"{prefix}:{name}"
        out.append("<" + last + "".join(f' {a}=""' for a in attributes) + ">")
    return "".join(out)


def expand(text):
    """The octets that a text of STANDARDS stands for."""
    text = re.sub(r"\{[^{}]*\}", lambda m: " ".join(m[0].split()), text.strip("\n"))
    text = "".join(re.sub("^ {8}", "", line) for line in text.split("\n"))
    opened, out = [], []
    for part in re.split("(<[^<>]*>)", text):
        if part == "</>":
            part = f"</{opened.pop()}>"
        elif re.match("</[^ ]+>", part):
            opened.pop()
        elif re.match("<[a-zA-Z]", part) and not part.endswith("/>"):
            opened.append(re.split("[ ~>]", part[1:])[0])
        out.append(part)
    grouped = re.compile(r"\{([\w-]*)([:;]) ([^{}]*)\}")
    return grouped.sub(lambda m: elements(m[1], m[3], m[2] == ":"), "".join(out)).replace("~", "\n")


def head(*lines):
    """Lines of HTTP."""
    return "".join(line + "~" for line in lines).replace("~", "\r\n")


STANDARDS = [
    ("MS-OXWS (mail and calendars)", """
        <t:RequestServerVersion Version="Exchange2010"
         xmlns:t="http://schemas.microsoft.com/exchange/services/2006/types"/><m:FindItem Traversal="Shallow"
         xmlns:m="http://schemas.microsoft.com/exchange/services/2006/messages"><m:ItemShape><t:BaseShape>IdOnly</>
        </><m:ParentFolderIds><t:DistinguishedFolderId Id="inbox"/></></><m:ResponseMessages>
        <m:FindItemResponseMessage ResponseClass="Success"><m:ResponseCode>NoError</><m:RootFolder
         TotalItemsInView="" IncludesLastItemInRange="true"/></></><t:Items><t:Message><t:ItemId Id=""
         ChangeKey=""/>{t: Subject DateTimeSent Mailbox[Name EmailAddress]}</></>{t; CalendarItem Start End Location
        DisplayName IsRead}"""),
    ("MS-WSSP, DataSet and data contracts of .NET", """
        <diffgr:diffgram xmlns:msdata="urn:schemas-microsoft-com:xml-msdata"
         xmlns:diffgr="urn:schemas-microsoft-com:xml-diffgram-v1"><NewDataSet xmlns=""/></><ArrayOfString
         xmlns="http://schemas.microsoft.com/2003/10/Serialization/Arrays"><string></></>
         xmlns:b="http://schemas.datacontract.org/2004/07/" i:nil="true"/>"""),
    ("CAP 1.2, EDXL-DE 1.0 (OASIS)", """
        <EDXLDistribution xmlns="urn:oasis:names:tc:emergency:EDXL:DE:1.0"/>{; distributionID contentObject}<alert
         xmlns="urn:oasis:names:tc:emergency:cap:1.2">{: identifier sender sent}<status>Actual</><msgType>Alert</>
        <source></><scope>Public</><code></><info><language>en-US</><category>Met</><event></><urgency>Expected</>
        <severity>Severe</><certainty>Likely</><eventCode>{: valueName value}</><effective></>{: expires senderName
        headline description instruction web contact}<area>{: areaDesc polygon geocode}</></></>"""),
    ("HL7 version 3; IHE ITI-44 to 47 and 55", """
        <PRPA_IN201305UV02 xmlns="urn:hl7-org:v3" ITSVersion="XML_1.0"><id root="" extension=""/><creationTime
         value="20"/><interactionId root="2.16.840.1.113883.1.6" extension="PRPA_IN201305UV02"/><processingCode
         code="P"/><processingModeCode code="T"/><acceptAckCode code="AL"/><receiver typeCode="RCV"><device
         classCode="DEV" determinerCode="INSTANCE"/></><sender typeCode="SND"/><controlActProcess classCode="CACT"
         moodCode="EVN"><code code="PRPA_TE201305UV02" codeSystem="2.16.840.1.113883.1.18"/><subject
         typeCode="SUBJ"><statusCode code="active"/><patientPerson>{: name[given family]}<administrativeGenderCode
         code="M"/><birthTime value="19"/></></><queryByParameter><queryId root=""/><responseModalityCode code="R"/>
        <responsePriorityCode code="I"/><parameterList><semanticsText>LivingSubject.name</></></></></>{;
        streetAddressLine city state postalCode country}"""),
    ("ebXML RIM, RS, lcm and query 3.0 (OASIS); IHE ITI-18, 38, 39, 41 to 43", """
        <lcm:SubmitObjectsRequest xmlns:lcm="urn:oasis:names:tc:ebxml-regrep:xsd:lcm:3.0"><rim:RegistryObjectList
         xmlns:rim="urn:oasis:names:tc:ebxml-regrep:xsd:rim:3.0"><rim:ExtrinsicObject id="Document01"
         mimeType="text/xml" objectType="urn:uuid:" status="urn:oasis:names:tc:ebxml-regrep:StatusType:Approved">
        <rim:Slot name="creationTime"><rim:ValueList><rim:Value></></></><rim:Name><rim:LocalizedString value=""/>
        </><rim:Classification classificationScheme="urn:uuid:" classifiedObject="" nodeRepresentation="" id=""/>
        <rim:ExternalIdentifier identificationScheme="urn:uuid:" value="" id="" registryObject=""/></>
        <rim:Association associationType="urn:oasis:names:tc:ebxml-regrep:AssociationType:HasMember" sourceObject=""
         targetObject=""/></></><query:AdhocQueryRequest xmlns:query="urn:oasis:names:tc:ebxml-regrep:xsd:query:3.0"
         xmlns:rs="urn:oasis:names:tc:ebxml-regrep:xsd:rs:3.0"><query:ResponseOption returnComposedObjects="true"
         returnType="LeafClass"/><rim:AdhocQuery id="urn:uuid:14d4debf-8f97-4251-9a74-a90016b0af0d"><rim:Slot
         name="$XDSDocumentEntryPatientId"/></></><rs:RegistryResponse
         status="urn:oasis:names:tc:ebxml-regrep:ResponseStatusType:Success"/><RetrieveDocumentSetRequest
         xmlns="urn:ihe:iti:xds-b:2007">{: DocumentRequest[HomeCommunityId RepositoryUniqueId
        DocumentUniqueId]}</>"""),
    ("ebMS 2.0 and 3.0, AS4 (OASIS)", """
         xmlns:eb="http://www.oasis-open.org/committees/ebxml-msg/schema/msg-header-2_0.xsd" eb:version="2.0"{eb;
        CPAId ConversationId MessageData RefToMessageId Manifest}<eb:Messaging
         xmlns:eb="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/"><eb:UserMessage mpc="">{eb:
        MessageInfo[Timestamp MessageId] PartyInfo[From[PartyId@type Role] To[PartyId Role]]
        CollaborationInfo[AgreementRef Service Action ConversationId] MessageProperties[Property@name]}</></>{eb;
        PayloadInfo PartInfo@href PartProperties SignalMessage Receipt}"""),
    ("WSRF 1.2, WSN 1.3 (OASIS)", """
        {wsrf-bf; Timestamp Originator ErrorCode FaultCause} xmlns:wsrf-bf="http://docs.oasis-open.org/wsrf/bf-2"
         wsrf/rp-2<wsnt:Subscribe xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"><wsnt:ConsumerReference/>
        <wsnt:Filter><wsnt:TopicExpression Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"/>
        </><wsnt:InitialTerminationTime>PT60S</></><wsnt:Notify><wsnt:NotificationMessage>
        <wsnt:SubscriptionReference/><wsnt:Topic/><wsnt:ProducerReference/>{wsnt: Message}</></>{wsnt;
        SubscribeResponse CurrentTime TerminationTime Renew Unsubscribe}"""),
    ("UPnP Device Architecture 1.1, ContentDirectory, AVTransport, WANIPConnection", """
        <u:GetExternalIPAddress xmlns:u="urn:schemas-upnp-org:service:WANIPConnection:1"/>{; NewRemoteHost
        NewExternalPort NewProtocol NewInternalPort NewInternalClient NewEnabled NewPortMappingDescription
        NewLeaseDuration}<u:Browse xmlns:u="urn:schemas-upnp-org:service:ContentDirectory:1"><ObjectID>0</>
        <BrowseFlag>BrowseDirectChildren</><Filter>*</><StartingIndex>0</><RequestedCount>0</><SortCriteria></></>
        <Result>&lt;DIDL-Lite xmlns=&quot;urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/&quot;
         xmlns:dc=&quot;http://purl.org/dc/elements/1.1/&quot;
         xmlns:upnp=&quot;urn:schemas-upnp-org:metadata-1-0/upnp/&quot;&gt;&lt;item id=&quot;&quot;
         parentID=&quot;0&quot;
         restricted=&quot;1&quot;&gt;&lt;dc:title&gt;&lt;/dc:title&gt;&lt;upnp:class&gt;
        object.item.audioItem&lt;/upnp:class&gt;&lt;/item&gt;&lt;/DIDL-Lite&gt;</>
        {: NumberReturned TotalMatches UpdateID}<u:Play xmlns:u="urn:schemas-upnp-org:service:AVTransport:1">
        <InstanceID>0</><Speed>1</></>service:RenderingControl:1{; Channel DesiredVolume CurrentURI
        CurrentTransportState TrackDuration}<detail><UPnPError xmlns="urn:schemas-upnp-org:control-1-0">{: errorCode
        errorDescription}</></>"""),
    ("CWMP 1.0 to 1.4 (TR-069), data models of TR-098 and TR-181", """
         xmlns:cwmp="urn:dslforum-org:cwmp-1-2"><SOAP-ENV:Header><cwmp:ID SOAP-ENV:mustUnderstand="1"></></>
        <SOAP-ENV:Body><cwmp:Inform>{: DeviceId[Manufacturer OUI ProductClass SerialNumber]}<Event
         SOAP-ENC:arrayType="cwmp:EventStruct[1]"><EventStruct><EventCode>2 PERIODIC</><CommandKey></></></>
        <MaxEnvelopes>1</><CurrentTime></><RetryCount>0</><ParameterList
         SOAP-ENC:arrayType="cwmp:ParameterValueStruct[8]"><ParameterValueStruct>
        <Name>Device.DeviceInfo.HardwareVersion</><Value xsi:type="xsd:string"></></><ParameterValueStruct>
        <Name>InternetGatewayDevice.DeviceInfo.SoftwareVersion</><Value xsi:type="xsd:unsignedInt"></></></></>
        </>Device.ManagementServer.ConnectionRequestURL{cwmp; InformResponse GetParameterValues
        GetParameterValuesResponse SetParameterValues SetParameterValuesResponse GetParameterNames AddObject
        Download TransferComplete Reboot}{; ParameterNames ParameterPath NextLevel ParameterKey ParameterInfoStruct
        Writable FileType URL TargetFileName DelaySeconds StartTime CompleteTime FaultCode
        FaultString}InternetGatewayDevice.WANDevice.1.WANConnectionDevice.1.WANIPConnection.1.ExternalIPAddress
        .LANDevice.1.WLANConfiguration.1.Stats.TotalBytesReceived0
         BOOTSTRAP1 BOOT4 VALUE CHANGE6 CONNECTION REQUEST"""),
    ("ONVIF Core, Media, PTZ, Imaging and Event services", """
        {tds; GetDeviceInformationResponse Manufacturer Model FirmwareVersion SerialNumber HardwareId
        GetCapabilities Category GetServices IncludeCapability Service Namespace XAddr Version GetScopes
        GetSystemDateAndTimeResponse SystemDateAndTime} xmlns:tds="http://www.onvif.org/ver10/device/wsdl"
         xmlns:tt="http://www.onvif.org/ver10/schema"<tt:XAddr>http://192.168.1.1/onvif/device_service</>{tt;
        DateTimeType DaylightSavings TimeZone UTCDateTime Time Hour Minute Second Date Year Month Day Network System
        Major Minor Extension}<trt:GetProfilesResponse xmlns:trt="http://www.onvif.org/ver10/media/wsdl">
        <trt:Profiles token="Profile_1" fixed="true"><tt:Name></><tt:VideoSourceConfiguration token="">{tt: UseCount
        SourceToken}<tt:Bounds x="0" y="0" width="1920" height="1080"/></><tt:VideoEncoderConfiguration token="">
        <tt:Name></><tt:UseCount></><tt:Encoding>H264</>{tt: Resolution[Width Height] Quality
        RateControl[FrameRateLimit EncodingInterval BitrateLimit] H264[GovLength H264Profile] Multicast[Address[Type
        IPv4Address] Port TTL AutoStart] SessionTimeout}</></></>{trt; GetStreamUri StreamSetup MediaUri
        ProfileToken}<tt:Stream>RTP-Unicast</><tt:Transport><tt:Protocol>RTSP</></>{tt; Uri InvalidAfterConnect
        InvalidAfterReboot Timeout PTZConfiguration@token NodeToken AudioEncoderConfiguration}<tptz:ContinuousMove
         xmlns:tptz="http://www.onvif.org/ver20/ptz/wsdl"/>{tptz; Velocity}<tt:PanTilt x="0" y="0"
         space="http://www.onvif.org/ver10/tptz/PanTiltSpaces/VelocityGenericSpace"/><tt:Zoom
         x="0"/>http://www.onvif.org/ver20/imaging/wsdl<tev:PullMessages
         xmlns:tev="http://www.onvif.org/ver10/events/wsdl"><tev:Timeout>PT1M</><tev:MessageLimit></></>{tev;
        CreatePullPointSubscription PullMessagesResponse}<wsnt:Topic
         Dialect="http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet">tns1:</><wsnt:Message><tt:Message
         UtcTime="" PropertyOperation="Changed"><tt:Source><tt:SimpleItem Name="VideoSourceToken" Value=""/></>
        <tt:Data><tt:SimpleItem Name="State" Value="true"/></></></>"""),
    ("WS-Discovery 2005/04 and 1.1, DPWS 1.1 (OASIS)", """
        <wsd:Probe xmlns:wsd="http://schemas.xmlsoap.org/ws/2005/04/discovery">
        <wsd:Types>dn:NetworkVideoTransmitter</></><wsa:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</>
        <wsa:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/ProbeMatches</><d:ProbeMatches
         xmlns:d="http://docs.oasis-open.org/ws-dd/ns/discovery/2009/01"/><wsd:ProbeMatch><wsa:EndpointReference>
        <wsa:Address>urn:uuid:</></>{wsd: Types Scopes XAddrs MetadataVersion}</><wsd:AppSequence InstanceId=""
         MessageNumber=""/>{wsd; Hello Bye Resolve}urn:docs-oasis-open-org:ws-dd:ns:discovery:2009:01
         xmlns:wsdp="http://docs.oasis-open.org/ws-dd/ns/dpws/2009/01"{wsdp; ThisModel ThisDevice FriendlyName
        Relationship Hosted ServiceId}"""),
    ("WS-Management 1.0 (DMTF DSP0226)", """
        <wsman:ResourceURI xmlns:wsman="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
         s:mustUnderstand="true">http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/</>
        <wsman:OperationTimeout>PT60.000S</><wsman:MaxEnvelopeSize s:mustUnderstand="true">153600</>
        <wsman:SelectorSet><wsman:Selector Name=""></></><wsman:Locale xml:lang="en-US" s:mustUnderstand="false"/>
        {wsman; OptionSet Option@Name MaxElements OptimizeEnumeration}"""),
    ("WS-Transfer, WS-Enumeration, WS-Eventing, WS-MetadataExchange", """
        http://schemas.xmlsoap.org/ws/2004/09/transfer/GetResponse
         http://schemas.xmlsoap.org/ws/2004/09/enumeration/Pull{wsen; Enumerate EnumerateResponse Pull
        EnumerationContext MaxElements PullResponse Items EndOfSequence Release}<wse:Subscribe
         xmlns:wse="http://schemas.xmlsoap.org/ws/2004/08/eventing"><wse:EndTo/><wse:Delivery
         Mode="http://schemas.xmlsoap.org/ws/2004/08/eventing/DeliveryModes/Push"><wse:NotifyTo/></>
        <wse:Expires>PT</><wse:Filter Dialect=""/></>{wse; SubscribeResponse SubscriptionManager Identifier Renew
        Unsubscribe SubscriptionEnd}<mex:Metadata xmlns:mex="http://schemas.xmlsoap.org/ws/2004/09/mex">
        <mex:MetadataSection Dialect="http://schemas.xmlsoap.org/wsdl/"/></>{mex; GetMetadata MetadataReference}"""),
    ("WSDL 1.1, XML Schema", """
        <wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/"
         xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" targetNamespace=""><wsdl:types><xs:schema
         xmlns:xs="http://www.w3.org/2001/XMLSchema" elementFormDefault="qualified"><xs:element name=""
         type="xs:string" minOccurs="0" maxOccurs="unbounded"/><xs:complexType><xs:sequence/></></></></>{wsdl;
        message part portType operation input output binding}<soap:address location=""/>"""),
    ("WS-ReliableMessaging 2005/02, 1.1 and 1.2; WS-MakeConnection (OASIS)", """
        <wsrm:CreateSequence xmlns:wsrm="http://schemas.xmlsoap.org/ws/2005/02/rm"><wsrm:AcksTo><wsa:Address></></>
        <wsrm:Offer><wsrm:Identifier>urn:uuid:</></></><wsrm:CreateSequenceResponse>{wsrm: Identifier
        Accept[AcksTo]}</><wsa:Action>http://schemas.xmlsoap.org/ws/2005/02/rm/TerminateSequence</>{wsrm;
        LastMessage Expires Endpoint IncompleteSequenceBehavior CloseSequence TerminateSequenceResponse
        SequenceFault FaultCode}<wsmc:MakeConnection xmlns:wsmc="http://docs.oasis-open.org/ws-rx/wsmc/200702">
        <wsmc:Address>http://docs.oasis-open.org/ws-rx/wsmc/200702/anonymous?id=</></>
        <wsa:Action>http://docs.oasis-open.org/ws-rx/wsrm/200702/CreateSequenceResponse</><wsrm:Sequence
         xmlns:wsrm="http://docs.oasis-open.org/ws-rx/wsrm/200702" soap:mustUnderstand="1">
        <wsrm:Identifier>urn:uuid:</><wsrm:MessageNumber>1</></><wsrm:AckRequested/><wsrm:SequenceAcknowledgement>
        <wsrm:Identifier></><wsrm:AcknowledgementRange Lower="1" Upper="1"/></>"""),
    ("WS-Policy 1.2, WS-SecurityPolicy 1.2", """
        <wsp:Policy xmlns:wsp="http://schemas.xmlsoap.org/ws/2004/09/policy"><wsp:ExactlyOne><wsp:All>{sp;
        AlgorithmSuite}</></></> xmlns:sp="http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702\""""),
    ("WS-Trust 2005/02 and 1.3, WS-SecureConversation 2005/02 and 1.3", """
        http://schemas.xmlsoap.org/ws/2005/02/trust/RST/Issue
         http://docs.oasis-open.org/ws-sx/ws-trust/200512/RSTRC/IssueFinal<wst:RequestSecurityToken
         xmlns:wst="http://docs.oasis-open.org/ws-sx/ws-trust/200512">
        <wst:RequestType>http://docs.oasis-open.org/ws-sx/ws-trust/200512/Issue</>
        <wst:TokenType>http://docs.oasis-open.org/wss/oasis-wss-saml-token-profile-1.1#SAMLV2.0</>
        <wst:KeyType>http://docs.oasis-open.org/ws-sx/ws-trust/200512/SymmetricKey</><wst:KeySize>256</>
        <wsp:AppliesTo xmlns:wsp="http://schemas.xmlsoap.org/ws/2004/09/policy">{wsa: EndpointReference[Address]}</>
        <wst:Lifetime>{wsu: Created Expires}</><wst:Entropy><wst:BinarySecret></></></>{wst;
        RequestSecurityTokenResponseCollection RequestSecurityTokenResponse RequestedSecurityToken
        RequestedAttachedReference RequestedUnattachedReference RequestedProofToken Renewing Claims
        OnBehalfOf}<t:RequestSecurityToken xmlns:t="http://schemas.xmlsoap.org/ws/2005/02/trust"/>
        <sc:SecurityContextToken xmlns:sc="http://schemas.xmlsoap.org/ws/2005/02/sc"><sc:Identifier>urn:uuid:</></>
        <wsc:DerivedKeyToken xmlns:wsc="http://docs.oasis-open.org/ws-sx/ws-secureconversation/200512"/>{wsc; Offset
        Length Nonce}"""),
    ("SAML 1.1 (OASIS)", """
        <saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:1.0:assertion" MajorVersion="1" MinorVersion="1"
         AssertionID="_" Issuer="" IssueInstant="20"><saml:Conditions NotBefore="20" NotOnOrAfter="20"/>
        <saml:AuthenticationStatement AuthenticationMethod="urn:oasis:names:tc:SAML:1.0:am:password"
         AuthenticationInstant="20"><saml:Subject><saml:NameIdentifier
         Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"></><saml:SubjectConfirmation>
        <saml:ConfirmationMethod>urn:oasis:names:tc:SAML:1.0:cm:holder-of-key</></></></><saml:Attribute
         AttributeName="" AttributeNamespace="http://schemas.xmlsoap.org/ws/2005/05/identity/claims"/></>"""),
    ("SAML 2.0 (OASIS)", """
        <samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="_" Version="2.0"
         IssueInstant="20" Destination="" ProtocolBinding="urn:oasis:names:tc:SAML:2.0:bindings:SOAP"/>{samlp;
        ArtifactResolve Artifact AttributeQuery LogoutRequest NameIDPolicy}<samlp:Response ID="_" InResponseTo="_"
         Version="2.0" IssueInstant="20"><samlp:Status><samlp:StatusCode
         Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></></><saml2:Assertion
         xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion" ID="_" IssueInstant="20" Version="2.0"><saml2:Issuer>
        </></><saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" Version="2.0" ID="_"
         IssueInstant="20"><saml:Issuer></><saml:Subject><saml:NameID
         Format="urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"></><saml:SubjectConfirmation
         Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData NotOnOrAfter="20" Recipient=""
         InResponseTo=""/></></><saml:Conditions NotBefore="20" NotOnOrAfter="20">{saml:
        AudienceRestriction[Audience]}</><saml:AuthnStatement AuthnInstant="20" SessionIndex="_"><saml:AuthnContext>
        <saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</></></>
        <saml:AttributeStatement><saml:Attribute Name="urn:oid:" FriendlyName=""
         NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri"><saml:AttributeValue xsi:type="xs:string"></>
        </></></>"""),
    ("XML Encryption", """
        <xenc:EncryptedKey xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" Id="EK-"><xenc:EncryptionMethod
         Algorithm="http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"/><ds:KeyInfo><wsse:SecurityTokenReference/></>
        {xenc: CipherData[CipherValue]}<xenc:ReferenceList><xenc:DataReference URI="#ED-"/></></><xenc:EncryptedData
         Id="ED-" Type="http://www.w3.org/2001/04/xmlenc#Content"><xenc:EncryptionMethod
         Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc"/></>#rsa-1_5"/>#aes128-cbc"/>#tripledes-cbc"/>"""),
    ("XML Signature, exclusive canonicalization, RFC 4051", """
        {ds; X509IssuerSerial X509IssuerName X509SerialNumber KeyName KeyValue RSAKeyValue Modulus
        Exponent}<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo><CanonicalizationMethod
         Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/><SignatureMethod
         Algorithm="http://www.w3.org/2000/09/xmldsig#rsa-sha1"/><Reference URI="#_"><Transforms><Transform
         Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/><Transform
         Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></><DigestMethod
         Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"/>{: DigestValue}</></>{: SignatureValue
        KeyInfo[X509Data[X509Certificate]]}</><ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#" Id="SIG-">
        <ds:SignedInfo><ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#">
        <ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList=""/></>
        <ds:SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"/><ds:Reference URI="#id-">
        <ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></><ds:DigestMethod
         Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>{ds: DigestValue}</></>{ds:
        SignatureValue}<ds:KeyInfo><wsse:SecurityTokenReference><wsse:Reference URI="#X509-"
         ValueType="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3"/></></>
        </>"""),
    ("WS-Security 1.0 and 1.1 (OASIS)", """
         ValueType="http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#ThumbprintSHA1"
         xmlns:wsse11="http://docs.oasis-open.org/wss/oasis-wss-wssecurity-secext-1.1.xsd"<wsse:KeyIdentifier
         xmlns="http://schemas.xmlsoap.org/ws/2002/12/secext"/><o:Security s:mustUnderstand="1"
         xmlns:o="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"><u:Timestamp
         u:Id="_0"><u:Created>20</><u:Expires>20</></></><wsse:Security
         xmlns:wsse="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
         xmlns:wsu="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
         soap:mustUnderstand="1"><wsse:BinarySecurityToken
         EncodingType="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
         ValueType="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3"
         wsu:Id="X509-">MII</><wsu:Timestamp wsu:Id="TS-"><wsu:Created>20</><wsu:Expires>20</></><wsse:UsernameToken
         wsu:Id="UsernameToken-"><wsse:Username></><wsse:Password
         Type="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest">
        </><wsse:Nonce
         EncodingType="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary">
        </><wsu:Created>20</></><wsse:Password
         Type="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordText"></>
        </>"""),
    ("WS-Addressing 2004/08 and 1.0", """
        <wsa:ReferenceProperties/><wsa:Metadata/><wsa:FaultTo/>http://www.w3.org/2005/08/addressing/none
         wsa:ActionNotSupported<wsa:Action>http://www.w3.org/2005/08/addressing/soap/fault</><wsa:ReplyTo
         xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing">
        <wsa:Address>http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous</></><a:Action
         s:mustUnderstand="1">http://</><a:MessageID>urn:uuid:</><a:RelatesTo>urn:uuid:</><a:ReplyTo>
        <a:Address>http://www.w3.org/2005/08/addressing/anonymous</></><a:To s:mustUnderstand="1">http://</>
        <wsa:RelatesTo RelationshipType="http://www.w3.org/2005/08/addressing/reply">urn:uuid:</><wsa:Action
         xmlns:wsa="http://www.w3.org/2005/08/addressing">http://</><wsa:From><wsa:Address>http://</></>
        <wsa:ReplyTo><wsa:Address>http://www.w3.org/2005/08/addressing/anonymous</></><wsa:MessageID>urn:uuid:</>
        <wsa:Action soap:mustUnderstand="1">http://</><wsa:To soap:mustUnderstand="1">http://</>
        <wsa:MessageID>urn:uuid:</><wsa:To>http://www.w3.org/2005/08/addressing/anonymous</><wsa:Action>http://</>
        <wsa:RelatesTo>urn:uuid:</><wsa:To>http://</><wsa:EndpointReference><wsa:Address>http://</>
        <wsa:ReferenceParameters></></>"""),
    ("XOP, SOAP with Attachments, MIME (RFC 2045, 2387)", head(
        "", "--MIME_boundary", 'Content-Type: application/xop+xml; charset=UTF-8; type="application/soap+xml"',
        "Content-Transfer-Encoding: binary", "Content-ID: <root>", "", "Content-Type: application/octet-stream",
        "Content-Transfer-Encoding: 8bit", "Content-ID: <", "") +
        '<xop:Include xmlns:xop="http://www.w3.org/2004/08/xop/include" href="cid:"/>'),
    ("HTTP (RFC 9110 to 9112, 6265, 7617): answers", head(
        "HTTP/1.1 400 Bad Request", "HTTP/1.1 401 Unauthorized", 'WWW-Authenticate: Basic realm="',
        "HTTP/1.1 404 Not Found", "HTTP/1.1 503 Service Unavailable", "Content-Type: text/html; charset=iso-8859-1",
        "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
        "Vary: Accept-Encoding", "Content-Encoding: gzip", "HTTP/1.1 202 Accepted", "Content-Length: 0",
        "HTTP/1.1 500 Internal Server Error", "Date: Thu, 01 Jan 2026 00:00:00 GMT",
        "Content-Type: text/xml;charset=UTF-8", "Set-Cookie: ", "Cache-Control: private, max-age=0", "Expires: 0",
        "Keep-Alive: timeout=5, max=100",
        "Connection: Keep-Alive", "HTTP/1.1 200 OK", "Server: Apache", "Transfer-Encoding: chunked",
        "Content-Type: application/soap+xml; charset=utf-8", "Date: Tue, ", "HTTP/1.1 200 OK",
        "Content-Type: text/xml; charset=utf-8", "Content-Length: ")),
    ("HTTP, the bindings of SOAP 1.1 and 1.2: requests", head(
        'Content-Type: multipart/related; type="application/xop+xml"; boundary="MIME_boundary"; start="<root>"; '
        'start-info="application/soap+xml"', "Authorization: Digest username=", "Cookie: ", "Expect: 100-continue",
        "X-Forwarded-For: ", "Authorization: Basic ", "Accept-Encoding: gzip, deflate", "Cache-Control: no-cache",
        "Accept: application/soap+xml, text/xml, multipart/related, */*", "Connection: close",
        "POST /services/ HTTP/1.1", 'Content-Type: application/soap+xml; charset=utf-8; action="http://www.',
        "POST / HTTP/1.1", "Host: localhost:8080", "Connection: keep-alive", "Accept-Encoding: gzip,deflate",
        "User-Agent: ", "Accept: */*",
        "Content-Type: text/xml; charset=utf-8", 'SOAPAction: ""', 'SOAPAction: "http://www.', "Content-Length: ")),
    ("words of names: CCTS 2.01 (UN/CEFACT), Dublin Core, vCard (RFC 6350), WSDL 1.1; XML Schema part 2", """
        {; parameters arguments description version request response result status code message count total amount
        price currency quantity number type date time start end user username password key token session language
        country city address phone email title items value name id item list return data error Error ErrorCode
        ErrorMessage Parameters Description Version Request Response Result Results Status StatusCode Message Count
        Total Amount Price Currency Quantity Number Type Date Time StartDate EndDate User UserName Password Key
        Token SessionId Language Country City Address Phone Email Title Items Item Value Name Id ID Code List Data
        Success Customer Order Account Product}true</false</ xsi:nil="true"/> xsi:nil="1"/>
         xml:lang="en">2026-01-01T00:00:00.000Z</ +00:00T00:00:00Z</00:00:00</ xml:space="preserve"
         xsi:schemaLocation="http://www."""),
    ("SOAP encoding (SOAP 1.1 section 5, 1.2 part 2)", """
         xmlns:ns2="http://xml.apache.org/xml-soap"<multiRef id="id0" soapenc:root="0"
         soapenv:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/" xsi:type="ns1:ArrayOf
         soapenc:arrayType="xsd:anyType[1]" xsi:type="soapenc:Array">SOAP-ENC:arrayType="xsd:string[2]"
         xsi:type="SOAP-ENC:Array"><item xsi:type="xsd:string"></item><item xsi:type="xsd:int"> href="#id0"/>
         xmlns:enc="http://www.w3.org/2003/05/soap-encoding" xmlns:apachesoap= xsi:type="xsd:decimal"
         xsi:type="xsd:float" xsi:type="xsd:long" xsi:type="xsd:double" xsi:type="xsd:dateTime"
         xsi:type="xsd:base64Binary" xsi:type="xsd:boolean">true< xsi:type="xsd:int">0< xsi:type="xsd:string">
         xsi:type="ns1:<return xsi:type="xsd:<m: xmlns:m="<ns1: xmlns:ns1="urn:<ns2: xmlns:ns2="http://"""),
    ("SOAP 1.1 and 1.2: faults", """
        http://www.w3.org/2003/05/soap-envelope/role/next http://schemas.xmlsoap.org/soap/actor/next<env:Fault>
        <env:Code><env:Value>env:Sender</><env:Subcode><env:Value></></></><env:Reason><env:Text xml:lang="en"></>
        </>{env; Node Role}<env:Detail></></>env:Receiver</env:MustUnderstand</env:VersionMismatch</<s:Fault>
        <s:Code><s:Value>s:Sender</><s:Subcode><s:Value>a:</></></><s:Reason><s:Text xml:lang="en-US"></></>
        <s:Detail/></><SOAP-ENV:Fault><faultcode>SOAP-ENV:Client</><faultstring></><faultactor></><detail></></>
        <faultcode>SOAP-ENV:Server</<faultcode xsi:type="xsd:string">soap:Client</<s:Fault>
        <faultcode>s:Client</<faultstring xml:lang="en-US"></faultstring></s:Fault></s:Body></s:Envelope>
        <soapenv:Fault><faultcode>soapenv:Server</<faultstring>{; detail}<soap:Fault>
        <faultcode>soap:Server</faultcode><faultstring></faultstring><detail></detail></soap:Fault></soap:Body>
        </soap:Envelope>~"""),
    ("SOAP 1.1 and 1.2: envelopes; namespaces of XML Schema, 2001 and 1999", """
         xmlns:xsd="http://www.w3.org/1999/XMLSchema"
         xmlns:xsi="http://www.w3.org/1999/XMLSchema-instance"<soap12:Envelope
         xmlns:soap12="http://www.w3.org/2003/05/soap-envelope"><soap12:Body></></><Envelope
         xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body></></><env:Envelope
         xmlns:env="http://www.w3.org/2003/05/soap-envelope">~ <env:Header/>~ <env:Body>~  <~ </>~</>
        <SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/"
         xmlns:SOAP-ENC="http://schemas.xmlsoap.org/soap/encoding/"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
         SOAP-ENV:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><SOAP-ENV:Header></><SOAP-ENV:Body></>
        </><soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope"><soap:Header/><soap:Body></></>
        <s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"
         xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header></><s:Body></></><S:Envelope
         xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body></></><s:Envelope
         xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header></><s:Body
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"></></>
        <?xml version='1.0' encoding='UTF-8'?><soapenv:Envelope
         xmlns:soapenv="http://www.w3.org/2003/05/soap-envelope"><soapenv:Header
         xmlns:wsa="http://www.w3.org/2005/08/addressing"></><soapenv:Body></></><?xml
         version="1.0"?>~<SOAP-ENV:Envelope~    xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/">~
          <SOAP-ENV:Body>~    <~    </>~</>~<?xml version="1.0" encoding="utf-8"?>~<soap:Envelope
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
         xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">~  <soap:Header>~    </>~  <soap:Body>~    <~
          </>~</><?xml version="1.0" encoding="utf-8"?><soap:Envelope
         xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
        <soap:Header></><soap:Body></></><?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope
         xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Header></><soapenv:Body></></><soap:Envelope
         xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body></></><?xml version="1.0"
         encoding="UTF-8"?>~<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">~
           <soapenv:Header/>~   <soapenv:Body>~      <"""),
]


def main():
    octets = "".join(text if "\r" in text else expand(text) for _, text in STANDARDS).encode()
    if len(octets) > 32768:
        sys.exit(f"vocabulary.py: {len(octets)} octets; 32768 are the most")
    sys.stdout.buffer.write(octets)


if __name__ == "__main__":
    main()
